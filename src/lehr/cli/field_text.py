"""A field of intent that differs, as text."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.cli import patch_text, terminal
from lehr.cli.explanation_text import value, values
from lehr.query.compare import ChangeKind, FieldChange

_SIGNS = {ChangeKind.ADDED: "+", ChangeKind.CHANGED: "~", ChangeKind.REMOVED: "-"}
_COLOURS = {ChangeKind.ADDED: "green", ChangeKind.CHANGED: "yellow", ChangeKind.REMOVED: "red"}


def sign(kind: ChangeKind) -> str:
    """`+`, `~` or `-`, in its colour."""
    return terminal.style(_SIGNS[kind], _COLOURS[kind])


def lines(change: FieldChange, *, full: bool) -> Iterator[str]:
    """For a terminal; of a long text, the first lines that differ, unless `full`."""
    begin = sign(change.kind)
    if _is_text(change):
        yield f"{begin} {change.path}"
        for line in _text_patch(change, full):
            yield f"    {patch_text.coloured(line)}"
    elif change.kind is ChangeKind.ADDED:
        yield f"{begin} {change.path}: {value(change.after)}"
    elif change.kind is ChangeKind.REMOVED:
        yield f"{begin} {change.path}: {value(change.before)}"
    else:
        before, after = values(change.before, change.after)
        yield f"{begin} {change.path}: {before} -> {after}"


def patch(change: FieldChange, *, full: bool) -> Iterator[str]:
    """The change as lines of a patch."""
    if _is_text(change):
        yield f"  {change.path}"
        yield from _text_patch(change, full)
        return
    changed = change.kind is ChangeKind.CHANGED
    before, after = (
        values(change.before, change.after) if changed else map(value, (change.before, change.after))
    )
    if change.kind is not ChangeKind.ADDED:
        yield f"- {change.path}: {before}"
    if change.kind is not ChangeKind.REMOVED:
        yield f"+ {change.path}: {after}"


def _is_text(change: FieldChange) -> bool:
    sides = [side for side in (change.before, change.after) if side is not None]
    return all(isinstance(side, str) for side in sides) and any("\n" in side for side in sides)


def _text_patch(change: FieldChange, full: bool) -> Iterator[str]:
    return patch_text.patch(str(change.before or ""), str(change.after or ""), full=full)
