"""Names of modules and packages to source files."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path

from lehr.base.errors import LehrError

DECIDING = ("lehr.checks", "lehr.enforce", "lehr.publish", "lehr.store.sql", "lehr.store.sqlite")
"""The subject of a simulation: the packages that decide, and record decisions."""


def sources(names: Iterable[str]) -> dict[str, Path]:
    """The source file of each module in `names`, and of each module below a package, by module name.

    Raises:
        LehrError: there is no such module, or it has no Python source.
    """
    return dict(sorted(pair for name in names for pair in _sources(name)))


def _sources(name: str) -> Iterator[tuple[str, Path]]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # a parent that is not a package, or a name such as `.x`
        spec = None
    if spec is None or not (spec.origin or "").endswith(".py"):
        raise LehrError(
            f"{name!r} is not a Python module",
            fix="name modules or packages as in an import: lehr.enforce, lehr.enforce.step",
        )
    assert spec.origin is not None
    path = Path(spec.origin)
    yield name, path
    if spec.submodule_search_locations is not None:
        for file in path.parent.rglob("*.py"):
            parts = file.relative_to(path.parent).with_suffix("").parts
            if file != path:
                yield ".".join((name, *(parts[:-1] if parts[-1] == "__init__" else parts))), file
