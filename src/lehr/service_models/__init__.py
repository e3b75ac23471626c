"""Service models: from a few lines about a service to all the assets that it needs.

In: a source file of the workspace, in words about a service. Out: assets of the types that ship
with Lehr, with the references, orders and affected clusters that belong to them.

    from lehr.service_models import modelled
    from lehr.sdk.generator import for_each_file

    @for_each_file("services/*.yaml")
    def services(file):
        yield from modelled(file)

The first key of such a file, `model`, selects one: `service`, `web-service`, `database` or `files`. Each is
a function as well, for files that belong to one model alone.

Architecture invariant: a model only yields what a generator written by hand could. It is a shorthand, never a
bypass: users who outgrow it write the generator themselves.
"""

from lehr.service_models.database import Database, database
from lehr.service_models.files import Files, files
from lehr.service_models.model_choice import MODELS, modelled
from lehr.service_models.service import Service, service
from lehr.service_models.web_service import Cluster, WebService, assets_of, web_service

__all__ = [
    "MODELS",
    "Cluster",
    "Database",
    "Files",
    "Service",
    "WebService",
    "assets_of",
    "database",
    "files",
    "modelled",
    "service",
    "web_service",
]
