"""A `Comparison` as text, Markdown and plain data."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from lehr.cli import terminal, words
from lehr.cli.told import value, values
from lehr.query.compare import AssetComparison, Comparison, FieldChange, Kind

_SIGNS = {Kind.ADDED: "+", Kind.CHANGED: "~", Kind.REMOVED: "-"}
_COLOURS = {Kind.ADDED: "green", Kind.CHANGED: "yellow", Kind.REMOVED: "red"}
_MOST_LINES = 40
_MOST_DETAILS = 100
_FENCE = re.compile("`{3,}")


def text(comparison: Comparison) -> Iterator[str]:
    """For people at a terminal."""
    for asset in comparison.assets:
        sign = terminal.style(_SIGNS[asset.kind], _COLOURS[asset.kind])
        at = f", {asset.origin}" if asset.origin else ""
        yield f"{sign} {asset.id} ({asset.type}{at})"
        for change in asset.fields:
            yield from (f"    {line}" for line in _field(change))
    yield summary(comparison)


def summary(comparison: Comparison) -> str:
    """One line: how many assets were added, changed and removed."""
    counts = ", ".join(f"{comparison.count(kind):,} {kind}" for kind in Kind if comparison.count(kind))
    return f"{comparison.before} to {comparison.after}: {counts or 'no differences'}"


def markdown(comparison: Comparison) -> Iterator[str]:
    """For a comment on a pull request: a table, and the fields of each asset folded."""
    yield f"### {_escaped(summary(comparison))}"
    if not comparison.assets:
        return
    yield ""
    yield "| | asset | type | fields |"
    yield "|---|---|---|---|"
    for asset in comparison.assets:
        fields = words.counted(len(asset.fields), "field") if asset.kind is Kind.CHANGED else ""
        yield f"| {asset.kind} | `{asset.id}` | `{asset.type}` | {fields} |"
    for asset in comparison.assets[:_MOST_DETAILS]:
        yield from _details(asset)
    if len(comparison.assets) > _MOST_DETAILS:
        yield ""
        yield f"The fields of {len(comparison.assets) - _MOST_DETAILS} more assets are not shown."


def _details(asset: AssetComparison) -> Iterator[str]:
    lines = [line for change in asset.fields for line in _patch(change)]
    # A fence must be longer than any in its content.
    longest = max((len(found) for line in lines for found in _FENCE.findall(line)), default=2)
    fence = "`" * (longest + 1)
    yield ""
    yield f"<details><summary>{asset.kind} <code>{asset.id}</code></summary>"
    yield ""
    yield f"{fence}diff"
    yield from lines
    yield fence
    yield "</details>"


def document(comparison: Comparison) -> dict[str, Any]:
    """As plain data."""
    return {
        "before": comparison.before,
        "after": comparison.after,
        **{str(kind): comparison.count(kind) for kind in Kind},
        "assets": msgspec.to_builtins(comparison.assets),
    }


def _field(change: FieldChange) -> Iterator[str]:
    sign = terminal.style(_SIGNS[change.kind], _COLOURS[change.kind])
    if _is_text(change):
        yield f"{sign} {change.path}"
        for line in _text_patch(change):
            yield f"    {terminal.style(line, _line_colour(line))}"
    elif change.kind is Kind.ADDED:
        yield f"{sign} {change.path}: {value(change.after)}"
    elif change.kind is Kind.REMOVED:
        yield f"{sign} {change.path}: {value(change.before)}"
    else:
        before, after = values(change.before, change.after)
        yield f"{sign} {change.path}: {before} -> {after}"


def _patch(change: FieldChange) -> Iterator[str]:
    """The change as lines of a patch."""
    if _is_text(change):
        yield f"  {change.path}"
        yield from _text_patch(change)
        return
    changed = change.kind is Kind.CHANGED
    before, after = (
        values(change.before, change.after) if changed else map(value, (change.before, change.after))
    )
    if change.kind is not Kind.ADDED:
        yield f"- {change.path}: {before}"
    if change.kind is not Kind.REMOVED:
        yield f"+ {change.path}: {after}"


def _is_text(change: FieldChange) -> bool:
    sides = [side for side in (change.before, change.after) if side is not None]
    return all(isinstance(side, str) for side in sides) and any("\n" in side for side in sides)


def _text_patch(change: FieldChange) -> Iterator[str]:
    """Line by line, with two lines around each change; bounded."""
    before, after = (str(side or "").splitlines() for side in (change.before, change.after))
    lines = list(difflib.unified_diff(before, after, n=2, lineterm=""))[2:]
    yield from map(terminal.printable, lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f" ... and {len(lines) - _MOST_LINES} more lines"


def _line_colour(line: str) -> str | None:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", text)
