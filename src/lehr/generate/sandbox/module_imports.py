"""Which code of the snapshot goes into what a module's generators make.

What a module imports, at once or later, it names in `import` statements; what it has loaded otherwise
while it was imported itself is known as well. Calls are given this code and no other, so there is nothing
that they depend on unknown: a module that is only named while a call runs is not found.
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
    """First parts of the names in `import` statements, wherever they stand."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # whoever imports it is told
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.partition(".")[0]
