"""Plain asset files: assets written down in YAML, JSON or TOML.

A document is one asset, a list of assets, or a mapping `{assets: [...]}`; a YAML file may hold
several documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lehr.base import documents
from lehr.base.diagnostics import Position
from lehr.generate.outcome.output import Output, UnsetFields, gathered
from lehr.generate.outcome.problem_list import Collected
from lehr.generate.typing.conversion import Converted, convert
from lehr.generate.typing.messages import written
from lehr.generate.typing.unset_fields import unset_fields
from lehr.model.asset import Asset
from lehr.model.types import Registry


def read_assets(path: str, content: bytes, inputs: str, registry: Registry) -> Output:
    """The assets that the file declares, and all problems in it."""
    loaded = documents.load(path, content)
    problems = Collected(path, loaded.diagnostics)
    assets: list[Asset] = []
    unset: list[UnsetFields] = []
    first = _first_line(path, content) if len(loaded.documents) == 1 else None
    for document in loaded.documents:
        for base, value in _declared(document.value):
            if problems.full:
                break
            origin = first if base == "" else None
            asset, found = _convert(document, base, value, origin, registry)
            problems.add(found)
            if asset is not None:
                assets.append(asset)
                unset.append(unset_fields(value, asset, registry))
    return Output(inputs, tuple(assets), (), problems.all(), unset_fields=gathered(unset))


class Declared(NamedTuple):
    """An asset as a document declares it.

    Attributes:
        pointer: its place in the document.
        value: the value there.
    """

    document: documents.Document
    pointer: str
    value: dict[str, Any]


def declared_in(path: str, content: bytes, id: str) -> Declared | None:
    """The declaration of asset `id` in an asset file; None if it is not there in plain text."""
    if not path.endswith(tuple(documents.SUFFIXES)):
        return None
    for document in documents.load(path, content).documents:
        for base, value in _declared(document.value):
            if isinstance(value, dict) and value.get("id") == id:
                return Declared(document, base, value)
    return None


def place_of(path: str, content: bytes, id: str, pointer: str) -> Position | None:
    """Position in an asset file of the value at `pointer` of the document of asset `id`.

    Reads the whole file again: for problems that are found after it has been forgotten. None if the
    file does not declare the asset in plain text.
    """
    found = declared_in(path, content, id)
    if found is None:
        return None
    return found.document.position(found.pointer + written(pointer, found.value))


def _convert(
    document: documents.Document, base: str, value: Any, origin: Position | None, registry: Registry
) -> Converted:
    def place(pointer: str) -> Position:
        return document.position(base + pointer)

    # The document rereads its text to answer, so with a file of one asset this happens only on errors.
    return convert(value, registry, origin or place(""), place)


def _declared(value: Any) -> Iterator[tuple[str, Any]]:
    """Each asset in a document, with the JSON pointer to it."""
    if isinstance(value, dict) and set(value) == {"assets"}:
        if isinstance(value["assets"], list):
            yield from ((f"/assets/{index}", item) for index, item in enumerate(value["assets"]))
        else:
            yield "/assets", value["assets"]
    elif isinstance(value, list):
        yield from ((f"/{index}", item) for index, item in enumerate(value))
    elif value is not None:  # a YAML document may be empty
        yield "", value


def _first_line(path: str, content: bytes) -> Position:
    """Position of the only asset of a file, found without parsing it again."""
    for number, line in enumerate(content.splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith((b"#", b"---", b"%")):
            return Position(path, number, 1)
    return Position(path, 1, 1)
