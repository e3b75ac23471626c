"""Files that are rendered from templates, for one place or for several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from lehr.base.pointers import escaped
from lehr.model.addons import AFFECTED_CLUSTERS, LABELS, OWNER
from lehr.sdk.generator import DeclaredAsset, SourceFile, asset
from lehr.service_models.model_input import Problem, read, refused
from lehr.service_models.templates import Value, rendered
from lehr.service_models.web_service import Name

NOUN = "files"

Key = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One file.

    Attributes:
        path: absolute or relative to the base directory of the deployment.
        content: its text. In both, `{{name}}` stands for a value.
        mode: permissions.
    """

    path: str
    content: str
    mode: str = "0644"


class Files(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What people write about files.

    Attributes:
        name: the first part of their assets' ids.
        files: by the last part of their assets' ids.
        values: for all, besides `name` and `place`.
        places: by name, the values that differ there. Without any, each file is made once.
        owner: team that is responsible for them.
    """

    model: Literal["files"] = "files"
    name: Name
    files: Annotated[dict[Key, Template], msgspec.Meta(min_length=1)]
    values: dict[str, Value] = {}
    places: dict[Name, dict[str, Value]] = {}
    owner: str = ""


def files(file: SourceFile) -> Iterator[DeclaredAsset]:
    """A `lehr.File` for each of the `Files` that `file` describes: `NAME/FILE`, or `NAME/PLACE/FILE`.

    Raises:
        UnreadableFileError: the file does not describe files; has all problems, each with its place.
    """
    said = read(file, Files, NOUN)
    made, problems = [], []
    for place, own in said.places.items() or [("", {})]:
        values: dict[str, Value] = {"name": said.name, "place": place, **said.values, **own}
        prefix = f"{said.name}/{place}" if place else said.name
        for key, template in said.files.items():
            payload: dict[str, Any] = {"mode": template.mode}
            for part, text in (("path", template.path), ("content", template.content)):
                try:
                    payload[part] = rendered(text, values)
                except LookupError as error:
                    where = f" in place {place}" if place else ""
                    what = (
                        f"the {part} of {key} asks for the value `{error.args[0]}`, and there is none{where}"
                    )
                    fix = f"add it to `values`; there are {', '.join(sorted(values))}"
                    problems.append(Problem(f"/files/{escaped(key)}/{part}", what, fix))
            made.append(asset(f"{prefix}/{key}", "lehr.File", payload, _addons(said, place)))
    if problems:
        raise refused(file, NOUN, problems)
    yield from made


def _addons(said: Files, place: str) -> dict[str, Any]:
    addons: dict[str, Any] = {OWNER: {"team": said.owner}} if said.owner else {}
    if place:
        addons |= {AFFECTED_CLUSTERS: {"clusters": [place]}, LABELS: {"labels": {"place": place}}}
    return addons
