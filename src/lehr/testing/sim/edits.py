"""Edits of a source that cannot have been meant: none of them may be published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lehr.model.addons import DEPENDS_ON, TURNDOWN
from lehr.testing.sim.dice import Dice
from lehr.testing.world import THING

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
    """Something refers to a missing asset."""
    asset = b'{"id": "dangling", "type": "test.Thing", "payload": {"value": "1", "reads": ["nowhere"]}}'
    return {**contents, "assets/dangling.json": asset}


def empty_selector(contents: Contents, dice: Dice) -> Contents:
    """A freeze that names nothing."""
    asset = b'{"id": "empty", "type": "lehr.Freeze", "payload": {"select": {}, "reason": "launch"}}'
    return {**contents, "assets/empty.json": asset}


def named_but_gone(contents: Contents, dice: Dice) -> Contents:
    """A turned-down asset is gone, and another one still names it."""
    things = _things(contents)
    for gone, asset in things.items():
        if TURNDOWN in asset["addons"] and any(asset["id"] in _named(other) for other in things.values()):
            return {path: item for path, item in contents.items() if path != gone}
    return contents


def cycle(contents: Contents, dice: Dice) -> Contents:
    """Three things depend on each other, in a cycle."""
    things = list(_things(contents).items())[:3]
    if len(things) < 3:
        return contents
    chain = zip(things, [*things[1:], things[0]], strict=True)
    return contents | {
        path: msgspec.json.encode({**asset, "addons": {DEPENDS_ON: {"assets": [other["id"]]}}})
        for (path, asset), (_path, other) in chain
    }


def _things(contents: Contents) -> dict[str, dict[str, Any]]:
    """The things that are declared, by their file."""
    found = {path: msgspec.json.decode(contents[path]) for path in sorted(contents) if path != _WORKSPACE}
    return {path: item for path, item in found.items() if item["type"] == THING}


def _named(asset: dict[str, Any]) -> set[str]:
    order = asset["addons"].get(DEPENDS_ON, {})
    return {*asset["payload"]["reads"], *order.get("assets", ()), *order.get("capacity", ())}


BROKEN: tuple[Callable[[Contents, Dice], Contents], ...] = (
    truncated_file,
    emptied,
    gone,
    half_gone,
    doubled_file,
    blank_file,
    dangling,
    empty_selector,
    named_but_gone,
    cycle,
)
