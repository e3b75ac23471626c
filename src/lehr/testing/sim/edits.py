"""Edits of a source that nobody can have meant: none of them may be published."""

from __future__ import annotations

from collections.abc import Callable

from lehr.testing.sim.dice import Dice

Contents = dict[str, bytes]

_WORKSPACE = "lehr.yaml"


def truncated_file(contents: Contents, dice: Dice) -> Contents:
    """One file ends in the middle."""
    path = dice.pick(sorted(contents))
    return {**contents, path: contents[path][: len(contents[path]) // 2]}


def emptied(contents: Contents, dice: Dice) -> Contents:
    """Nothing is left but the workspace file."""
    return {_WORKSPACE: contents[_WORKSPACE]}


def gone(contents: Contents, dice: Dice) -> Contents:
    """Nothing is left."""
    return {}


def half_gone(contents: Contents, dice: Dice) -> Contents:
    """Half of the files are gone, as after a copy that broke off."""
    kept = sorted(contents)[: len(contents) // 2]
    return {path: contents[path] for path in (*kept, _WORKSPACE)}


def doubled_file(contents: Contents, dice: Dice) -> Contents:
    """One file is there twice."""
    path = dice.pick([path for path in sorted(contents) if path != _WORKSPACE] or [_WORKSPACE])
    return {**contents, f"assets/copy of {path.rsplit('/', 1)[-1]}": contents[path]}


def blank_file(contents: Contents, dice: Dice) -> Contents:
    """One file is empty."""
    return {**contents, dice.pick(sorted(contents)): b""}


def dangling(contents: Contents, dice: Dice) -> Contents:
    """Something refers to what is not there."""
    asset = b'{"id": "dangling", "type": "test.Thing", "payload": {"value": "1", "reads": ["nowhere"]}}'
    return {**contents, "assets/dangling.json": asset}


BROKEN: tuple[Callable[[Contents, Dice], Contents], ...] = (
    truncated_file,
    emptied,
    gone,
    half_gone,
    doubled_file,
    blank_file,
    dangling,
)
