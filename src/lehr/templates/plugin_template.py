"""Starter plugins for `lehr plugin new`, each in a folder of `plugin/`.

In: the name of a plugin, the type of its assets, and a language. Out: a small plugin that works, with what
`lehr plugin test` needs.

In contents and names of files, `line-plugin` is replaced by the name, and `example.Line` by the type. So each
template is also a plugin that works.

Architecture invariant: nothing is written into a folder that has anything in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from lehr.base.errors import LehrError, raised_as

FOLDER = Path(__file__).parent / "plugin"
"""Contains a folder for each language."""

_NAME = "line-plugin"
_TYPE = "example.Line"
_NAMES = re.compile(r"[a-z][a-z0-9]{0,30}(-[a-z0-9]{1,30}){0,4}")
_TYPES = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)+")
_MADE = {"node_modules", "__pycache__"}


class Language(NamedTuple):
    """A language that plugins can be written in.

    Attributes:
        prepare: command that prepares or builds a new plugin, in its folder; empty if none is needed.
        run: command that runs it there.
        file: the file to begin with.
    """

    prepare: str
    run: str
    file: str


LANGUAGES: Mapping[str, Language] = {
    "python": Language("", "python3 plugin.py", "plugin.py"),
    "node": Language("npm ci", "node plugin.js", "plugin.js"),
    "go": Language("./go.sh build -o line-plugin .", "./line-plugin", "main.go"),
}
"""All languages, by name. The commands are those of the plugin `line-plugin`."""


def type_of(name: str) -> str:
    """A type for the assets of the plugin `name`: `example.ShortLink` for `short-link`."""
    return "example." + "".join(part.capitalize() for part in name.split("-"))


def language_of(language: str, name: str) -> Language:
    """The language, with the commands of the plugin `name`."""
    return Language(*(part.replace(_NAME, name) for part in LANGUAGES[language]))


def write_plugin(language: str, name: str, type: str, directory: Path) -> list[str]:
    """Write a new plugin into `directory`, which may exist if it is empty. Returns their relative paths.

    Raises:
        LehrError: the name, the type or the folder cannot be used (then nothing is written), or a file
            cannot be written.
    """
    _check(name, type, directory)
    written = []
    with raised_as(LehrError, f"{directory} cannot be written", code="CLI204"):
        for path, source in _files(FOLDER / language):
            target = directory / _filled(path, name, type)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_filled(source.read_text(), name, type))
            target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
            written.append(str(target.relative_to(directory)))
    return written


def _check(name: str, type: str, directory: Path) -> None:
    if not _NAMES.fullmatch(name):
        raise LehrError(
            f"{name!r} is not a valid name of a plugin",
            code="CLI201",
            why="a name consists of lower-case letters and digits, in parts joined with hyphens",
            fix="choose a name like short-link",
        )
    if not _TYPES.fullmatch(type) or type.startswith("lehr."):
        raise LehrError(
            f"{type!r} is not a valid name of a type",
            code="CLI202",
            why="a name has at least two parts, joined with dots, and does not begin with `lehr.`",
            fix="choose a name like shop.ShortLink",
        )
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise LehrError(
            f"{directory} already exists and is not an empty folder",
            code="CLI203",
            why="`lehr plugin new` never overwrites a file",
            fix="choose another folder with --directory",
        )


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Files of a template: relative paths and places. Parts that templates share are links to folders."""
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted({*folders} - _MADE)
        for name in sorted(names):
            path = Path(parent, name)
            yield str(path.relative_to(folder)), path


def _filled(text: str, name: str, type: str) -> str:
    return text.replace(_NAME, name).replace(_TYPE, type)
