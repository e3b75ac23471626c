"""Finds the code in the snapshot that a module's generators depend on.

A module names its imports, immediate or deferred, in `import` statements; anything else that it loaded during
its own import is also known. Calls get only this code, so they have no unknown dependencies: a module that is
named only at run time is not found.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath


def closure(path: str, code: Mapping[str, bytes], loaded: Collection[str]) -> tuple[str, ...]:
    """Paths of the module at `path`, and of all modules that it may import, in the order of `code`.

    Args:
        code: every module's source by path.
        loaded: names of modules that have been imported.
    """
    by_name: dict[str, list[str]] = {}
    for other in code:
        by_name.setdefault(PurePosixPath(other).stem, []).append(other)
    found: set[str] = set()
    pending = [path, *(other for name in by_name.keys() & set(loaded) for other in by_name[name])]
    while pending:
        item = pending.pop()
        if item not in found:
            found.add(item)
            pending += [other for name in _named(code[item]) for other in by_name.get(name, ())]
    return tuple(other for other in code if other in found)


def _named(source: bytes) -> Iterator[str]:
    """First parts of the names in `import` statements at any depth."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # reported when it is imported
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.partition(".")[0]
