"""Service models: from a few lines about a service to all the assets that it takes.

In: a source file of the workspace, in words about a service. Out: assets of the types that ship
with Lehr, with the references, orders and affected clusters that belong to them.

    from lehr.models import web_service
    from lehr.sdk.generator import for_each_file

    @for_each_file("shop.yaml")
    def shop(file):
        yield from web_service(file, command=["shop", "{port}"], envoy=["bin/envoy.py"])

Architecture invariant: a model only yields what a generator written by hand could. It is a shorthand,
never a way round: whoever outgrows it writes the generator out.
"""

from lehr.models.web_service import Cluster, WebService, assets_of, web_service

__all__ = ["Cluster", "WebService", "assets_of", "web_service"]
