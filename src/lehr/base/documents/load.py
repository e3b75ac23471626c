"""One door for all formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from lehr.base.diagnostics import Position, file_problem
from lehr.base.documents.document import Documents
from lehr.base.documents.json_text import load_json
from lehr.base.documents.text import text_problem
from lehr.base.documents.toml_text import load_toml
from lehr.base.documents.yaml_stream import load_yaml

_LOADERS: Mapping[str, Callable[[str, bytes], Documents]] = {
    ".json": load_json,
    ".toml": load_toml,
    ".yaml": load_yaml,
    ".yml": load_yaml,
}

SUFFIXES = frozenset(_LOADERS)
"""Endings of file names that `load` understands, in lower case."""


def load(path: str, content: bytes) -> Documents:
    """Load every document of a file. The ending of its name gives the format.

    Args:
        path: name for diagnostics and positions.
        content: the file's bytes. Any bytes: faults in them become diagnostics.
    """
    loader = _LOADERS.get(PurePosixPath(path).suffix.lower())
    if loader is None:
        unknown = file_problem(
            "DOC013",
            Position(path),
            what="the file's name does not show its format",
            why=f"it does not end in one of {', '.join(sorted(SUFFIXES))}",
            fix="rename the file",
        )
        return Documents((), (unknown,))
    problem = text_problem(path, content)
    if problem is not None:
        return Documents((), (problem,))
    return loader(path, content)
