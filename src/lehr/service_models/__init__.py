"""Service models: generate all assets of a service from a few lines that describe it.

In: a source file of the workspace that describes a service. Out: assets of the types that ship with Lehr,
with their references, dependencies and affected clusters.

    from lehr.service_models import modelled
    from lehr.sdk.generator import for_each_file

    @for_each_file("services/*.yaml")
    def services(file):
        yield from modelled(file)

The key `model` of such a file selects one: `service`, `web-service`, `database` or `files`. Each is also a
function, for files that all use the same model.

Architecture invariant: a model only yields what a hand-written generator could yield. It is a shorthand,
never a bypass: users who outgrow it write their own generator.
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
