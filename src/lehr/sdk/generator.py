"""Generators: plain functions from source files, or from other generators' assets, to assets.

    from lehr.sdk.generator import SourceFile, asset, for_each_file

    @for_each_file("services/*.yaml")
    def processes(file: SourceFile):
        service = file.yaml()
        yield asset(f"{service['name']}/process", "lehr.Process", {"command": service["command"]})

The contract, for authors:

* A generator's only input is its argument and the code it imports; its only effect is what it
  yields. Files, network, processes, clock, randomness and the environment are denied.
* Equal input gives equal output: outputs are memoised, and a generator is run again only when
  its input or its code has changed.
* A module may hold any number of generators, and import modules next to it. A module whose name
  starts with `_` is only ever imported.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.documents.document import Documents
from lehr.base.documents.json_text import load_json
from lehr.base.documents.text import text_problem
from lehr.base.documents.toml_text import load_toml
from lehr.base.documents.yaml_stream import load_yaml
from lehr.base.errors import LehrError
from lehr.model.selector import Selector, parse_selector

_WILDCARDS = frozenset("*?[=,")  # and what selectors match
_MARK = "__lehr_generator__"


class DeclaredAsset(msgspec.Struct, frozen=True):
    """An asset as a generator declares it; make it with `asset`."""

    id: str
    type: str
    payload: Any
    addons: dict[str, Any] = {}
    version: int | None = None
    versions: dict[str, int] = {}


class Annotation(msgspec.Struct, frozen=True):
    """An addon for an asset that is declared elsewhere; make it with `annotate`."""

    id: str
    addon: str
    value: Any


Yielded = DeclaredAsset | Annotation


def asset(
    id: str,
    type: str,
    payload: Any,
    addons: Mapping[str, Any] | None = None,
    *,
    version: int | None = None,
    versions: Mapping[str, int] | None = None,
) -> DeclaredAsset:
    """Declare an asset.

    Args:
        id: unique within the partition.
        type: a registered type (`lehr.File`).
        payload: plain data, or an instance of the type's payload class.
        addons: value by addon type (`{"lehr.DependsOn": {"assets": ["db"]}}`).
        version: of the type, that `payload` has the form of; None for the newest.
        versions: of the types of addons, that these have the form of; where one is not named, the newest.
    """
    return DeclaredAsset(id, type, payload, dict(addons or {}), version, dict(versions or {}))


def annotate(id: str, addon: str, value: Any) -> Annotation:
    """Add the addon `addon` to the asset `id`, wherever that is declared.

    It is an error if no such asset is declared, or if it has this addon with another value.
    Annotations are put on last: generators over assets do not see them.
    """
    return Annotation(id, addon, value)


class UnreadableFileError(ValueError):
    """A source file is not the YAML, JSON or TOML that a generator took it for."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(f"{item.at}: {item.what}" for item in diagnostics))
        self.diagnostics = tuple(diagnostics)


class SourceFile:
    """A file of the snapshot, as it is at this revision."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path = path
        self._content = content

    def bytes(self) -> bytes:
        """The content as it is."""
        return self._content

    def text(self) -> str:
        """The content as UTF-8 text.

        Raises:
            UnicodeDecodeError: it is not UTF-8.
        """
        return self._content.decode()

    def yaml(self) -> Any:
        """The one YAML document in it, as plain data.

        Raises:
            UnreadableFileError: it is not valid, or holds another number of documents.
        """
        return _only(self.path, self._content, load_yaml)

    def json(self) -> Any:
        """The JSON value in it. Raises as `yaml` does."""
        return _only(self.path, self._content, load_json)

    def toml(self) -> Any:
        """The TOML table in it. Raises as `yaml` does."""
        return _only(self.path, self._content, load_toml)

    def documents(self) -> list[Any]:
        """Every YAML document in it, as plain data. Raises as `yaml` does."""
        return _values(self.path, self._content, load_yaml)


_Load = Callable[[str, bytes], Documents]


def _values(path: str, content: bytes, load: _Load) -> list[Any]:
    problem = text_problem(path, content)
    loaded = Documents((), (problem,)) if problem else load(path, content)
    if loaded.diagnostics:
        raise UnreadableFileError(loaded.diagnostics)
    return [document.value for document in loaded.documents]


def _only(path: str, content: bytes, load: _Load) -> Any:
    values = _values(path, content, load)
    if len(values) != 1:
        raise ValueError(f"{path} holds {len(values)} documents, not one")
    return values[0]


class AssetView(msgspec.Struct, frozen=True):
    """An asset as other generators see it: everything as plain data, every default written out."""

    id: str
    type: str
    payload: dict[str, Any]
    addons: dict[str, Any]


class Reads(enum.Enum):
    """The argument of a generator."""

    FILE = "file"
    FILES = "files"
    ASSET = "asset"
    ASSETS = "assets"


class Declaration(msgspec.Struct, frozen=True):
    """The declaration of a generator by its decorator.

    Attributes:
        of: for files the glob pattern; for assets the type, or the selector as text.
        makes: for a generator over assets, the types of the assets that it yields.
        templates: glob pattern of the templates that it may render (`lehr.sdk.templates`); "" for none.
    """

    reads: Reads
    of: str
    makes: tuple[str, ...] = ()
    templates: str = ""


Function = TypeVar("Function", bound=Callable[..., Iterable[Yielded]])


def for_each_file(pattern: str, *, templates: str = "") -> Callable[[Function], Function]:
    """The generator is called with each `SourceFile` whose path matches `pattern`.

    Patterns are relative to the workspace: `*` and `?` stay within one folder, `**` does not,
    `{a,b}` is either.

    Args:
        templates: pattern of the files that it may render (`lehr.sdk.templates`); a change of one of them
            runs it again for all of its input.
    """
    return _declare(Declaration(Reads.FILE, pattern, templates=templates))


def for_all_files(pattern: str, *, templates: str = "") -> Callable[[Function], Function]:
    """The generator is called once, with the list of all `SourceFile`s that match, by path.

    `templates` is as for `for_each_file`.
    """
    return _declare(Declaration(Reads.FILES, pattern, templates=templates))


def for_each_asset(
    type: str | Iterable[str] = (),
    makes: str | Iterable[str] = (),
    *,
    ids: str | Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    templates: str = "",
) -> Callable[[Function], Function]:
    """The generator is called with the `AssetView` of each asset that every given part holds for.

    Args:
        type: type or types of the assets it reads. Shell patterns are allowed, here and in `ids`.
        makes: type or types of the assets it yields. Generators that read these run after it; a
            cycle is an error. Not needed for annotations.
        ids: ids of the assets it reads.
        labels: labels that they have, with these values, where they are declared (addon `lehr.Labels`);
            annotations are put on later.
        templates: as for `for_each_file`.

    Raises:
        ValueError: nothing is given, which never means everything; or it is not a valid selector.
    """
    return _declare(Declaration(Reads.ASSET, _selected(type, ids, labels), _texts(makes), templates))


def for_all_assets(
    type: str | Iterable[str] = (),
    makes: str | Iterable[str] = (),
    *,
    ids: str | Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    templates: str = "",
) -> Callable[[Function], Function]:
    """The generator is called once, with the list of all `AssetView`s that are selected, by id.

    Arguments and errors are those of `for_each_asset`.
    """
    return _declare(Declaration(Reads.ASSETS, _selected(type, ids, labels), _texts(makes), templates))


def declaration(function: object) -> Declaration | None:
    """The declaration of `function`; None when it is not a generator."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Declaration) else None


def _selected(type: str | Iterable[str], ids: str | Iterable[str], labels: Mapping[str, str] | None) -> str:
    """The name of the one type, or a selector as text."""
    parts = {"ids": _texts(ids), "types": _texts(type), "labels": dict(labels or {})}
    selector = msgspec.convert(parts, Selector)
    only_types = not selector.ids and not selector.labels
    if only_types and len(selector.types) == 1 and not _WILDCARDS & set(selector.types[0]):
        return selector.types[0]
    text = str(selector)
    try:
        read = parse_selector(text)
    except LehrError as error:
        raise ValueError(f"{error.what}; {error.why}".strip("; ")) from error
    if read != selector:
        raise ValueError(f"{text} is ambiguous: leave out the commas")
    return text


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _is_another(before: Any, function: Any) -> bool:
    """Whether the module has two functions; not when it is read again, or has imported one."""
    return bool(before.__module__ == function.__module__ and before.__code__ != function.__code__)


def _declare(item: Declaration) -> Callable[[Function], Function]:
    def mark(function: Function) -> Function:
        if not hasattr(function, "__code__"):
            raise TypeError(f"a generator must be a plain function, and this is a {type(function).__name__}")
        if declaration(function) is not None:
            raise ValueError("a function can be only one generator: give each decorator its own function")
        name = function.__name__
        before = function.__globals__.get(name)
        if declaration(before) is not None and _is_another(before, function):
            raise ValueError(f"another generator has the name {name}, and one of the two would be lost")
        setattr(function, _MARK, item)
        return function

    return mark
