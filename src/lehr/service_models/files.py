"""Files that are rendered from templates, for one place or several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from lehr.base.pointers import escaped
from lehr.model.addons import AFFECTED_CLUSTERS, LABELS, OWNER
from lehr.sdk.generator import DeclaredAsset, SourceFile, asset
from lehr.sdk.templates import render
from lehr.service_models.model_input import InputProblem, Value, read, refused, rendered
from lehr.service_models.web_service import FileName, Name

NOUN = "files"


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One file.

    Attributes:
        path: absolute or relative to the base directory of the deployment.
        content: its text. In both, `{{name}}` is replaced with a value.
        template: instead of `content`, the path of a Jinja2 template of the workspace.
        mode: permissions.
    """

    path: str
    content: str | None = None
    template: str | None = None
    mode: str = "0644"

    def __post_init__(self) -> None:
        if (self.content is None) == (self.template is None):
            raise ValueError("a file needs either `content` or `template`")


class Files(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files that are rendered from templates.

    Attributes:
        name: the first part of their assets' ids.
        files: by the last part of their assets' ids.
        values: for all files, in addition to `name` and `place`.
        places: by name, the values that differ there. Without places, each file is created once.
        owner: the responsible team.
    """

    model: Literal["files"] = "files"
    name: Name
    files: Annotated[dict[FileName, Template], msgspec.Meta(min_length=1)]
    values: dict[str, Value] = {}
    places: dict[Name, dict[str, Value]] = {}
    owner: str = ""


def files(file: SourceFile) -> Iterator[DeclaredAsset]:
    """A `lehr.File` for each of the `Files` that `file` describes: `NAME/FILE`, or `NAME/PLACE/FILE`.

    Raises:
        UnreadableFileError: the file does not describe files; has all problems, with their positions.
    """
    spec = read(file, Files, NOUN)
    made, problems = [], []
    for place, own in spec.places.items() or [("", {})]:
        values: dict[str, Value] = {"name": spec.name, "place": place, **spec.values, **own}
        prefix = f"{spec.name}/{place}" if place else spec.name
        for key, template in spec.files.items():
            payload: dict[str, Any] = {"mode": template.mode}
            if template.template is not None:
                payload["content"] = render(template.template, **values)
            for part, text in (("path", template.path), ("content", template.content)):
                if text is None:
                    continue
                try:
                    payload[part] = rendered(text, values)
                except LookupError as error:
                    where = f" in place {place}" if place else ""
                    what = (
                        f"the {part} of {key} needs the value `{error.args[0]}`, which is not defined{where}"
                    )
                    fix = f"add it to `values`; defined values: {', '.join(sorted(values))}"
                    problems.append(InputProblem(f"/files/{escaped(key)}/{part}", what, fix))
            made.append(asset(f"{prefix}/{key}", "lehr.File", payload, _addons(spec, place)))
    if problems:
        raise refused(file, NOUN, problems)
    yield from made


def _addons(spec: Files, place: str) -> dict[str, Any]:
    addons: dict[str, Any] = {OWNER: {"team": spec.owner}} if spec.owner else {}
    if place:
        addons |= {AFFECTED_CLUSTERS: {"clusters": [place]}, LABELS: {"labels": {"place": place}}}
    return addons
