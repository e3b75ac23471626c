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

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping

from lehr.sdk.generator import DeclaredAsset, SourceFile
from lehr.service_models.database import Database, database
from lehr.service_models.files import Files, files
from lehr.service_models.model_input import PAGE, InputProblem, document_of, refused
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

MODELS: Mapping[str, Callable[[SourceFile], Iterator[DeclaredAsset]]] = {
    "service": service,
    "web-service": web_service,
    "database": database,
    "files": files,
}
"""All models, by name in a file."""


def modelled(file: SourceFile) -> Iterator[DeclaredAsset]:
    """The assets that `file` describes, by the service model that it names.

    Raises:
        UnreadableFileError: it names no model, or does not match it; has all problems, with their
            positions.
    """
    value = document_of(file).value
    named = value.get("model") if isinstance(value, dict) else None
    if isinstance(named, str) and named in MODELS:
        yield from MODELS[named](file)
        return
    close = difflib.get_close_matches(str(named), MODELS, n=1)
    known = f"did you mean `{close[0]}`?" if close else f"write `model:` with one of {', '.join(MODELS)}"
    what = "it has no `model`" if named is None else f"there is no model {named!r}"
    raise refused(
        file, "a service model", [InputProblem("" if named is None else "/model", what, f"{known} ({PAGE})")]
    )
