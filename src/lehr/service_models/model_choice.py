"""Selects the model that a file names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping

from lehr.sdk.generator import DeclaredAsset, SourceFile
from lehr.service_models.database import database
from lehr.service_models.files import files
from lehr.service_models.model_input import PAGE, Problem, document_of, refused
from lehr.service_models.service import service
from lehr.service_models.web_service import web_service

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
        file, "a service model", [Problem("" if named is None else "/model", what, f"{known} ({PAGE})")]
    )
