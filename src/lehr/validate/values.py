"""Values do not become empty, and numbers do not jump, without an acknowledgement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lehr.base.diagnostics import Diagnostic, Severity
from lehr.base.errors import StalledError
from lehr.base.pointers import escaped
from lehr.base.text import listed
from lehr.model.addons import is_turned_down
from lehr.model.asset import Asset
from lehr.model.declared import TYPE
from lehr.validate.guards import exceeds
from lehr.validate.proposal import DeltaProposal

_NAMES = frozenset(("base", "gid", "id", "number", "port", "uid", "version"))
"""Fields whose numbers are identifiers; the distance between two of them means nothing."""


class _Difference(NamedTuple):
    """A changed value.

    Attributes:
        pointer: JSON pointer into the asset's document.
        field: the same for every element of a list, with `*` as its index.
    """

    pointer: str
    field: str
    before: Any
    after: Any


_Found = dict[tuple[str, str], list[tuple[Asset, _Difference]]]
"""Findings by type and field."""


def values_blank_or_jump(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL024, VAL025: one diagnostic for each type and field.

    VAL024, a warning within `blank`: a field that was filled before is empty. VAL025: a number is more than
    `jump.factor` times as large or as small as before.
    """
    blank: _Found = {}
    jumps: _Found = {}
    for change in proposal.changes():
        before, after = change.before, change.after
        if before is None or after is None or before.type != after.type or not _is_judged(after):
            continue
        for found in _differences(_payload(before, proposal), after.document()["payload"]):
            if _is_blank(found.after) and not _is_blank(found.before):
                if _is_of_reference(found.pointer, after, proposal):
                    continue
                blank.setdefault((after.type, found.field), []).append((after, found))
            elif _jumps(found, proposal.limits.jump.factor):
                jumps.setdefault((after.type, found.field), []).append((after, found))
    for (type, field), places in blank.items():
        yield _blank(proposal, type, field, places)
    for (type, field), places in jumps.items():
        if not any(_covers(pattern, field) for pattern in proposal.limits.jump.ignore):
            yield _jump(proposal, type, field, places)


def _payload(asset: Asset, proposal: DeltaProposal) -> Any:
    """In today's form: a renamed field has not become empty."""
    try:
        return proposal.registry.data(asset)
    except StalledError:
        return asset.document()["payload"]


def _is_judged(asset: Asset) -> bool:
    # A type's schema has bounds and descriptions, not operational values.
    return asset.type != TYPE and not is_turned_down(asset)


def _differences(before: Any, after: Any, pointer: str = "", field: str = "") -> Iterator[_Difference]:
    """Changed values, as deep as both sides have the same shape, including removed fields."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name in after or not pointer:  # deeper down, it may be a removed entry of a map
                part = escaped(name)
                yield from _differences(value, after.get(name), f"{pointer}/{part}", f"{field}/{part}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{pointer}/{index}", f"{field}/*")
        return
    if pointer:
        yield _Difference(f"/payload{pointer}", field, before, after)


def _is_of_reference(pointer: str, asset: Asset, proposal: DeltaProposal) -> bool:
    """Whether this is a part that a reference to a secret no longer needs because its target changed."""
    place, _, name = pointer.rpartition("/")
    known = proposal.registry.secrets(asset) if name in ("digest", "version") else ()
    return any(place == path for path, _ in known)


def _is_blank(value: Any) -> bool:
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def _jumps(found: _Difference, factor: float) -> bool:
    old, new = found.before, found.after
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in (old, new)):
        return False
    if found.field.rpartition("/")[2] in _NAMES:
        return False
    low, high = sorted((abs(old), abs(new)))
    # There is no factor from or to zero: there, the number itself counts.
    return bool(high > factor if old * new <= 0 else high > factor * low)


def _covers(pattern: str, field: str) -> bool:
    wanted, found = pattern.split("/"), field.split("/")
    return len(wanted) == len(found) and all(
        one in ("*", other) for one, other in zip(wanted, found, strict=True)
    )


def _blank(
    proposal: DeltaProposal, type: str, field: str, places: list[tuple[Asset, _Difference]]
) -> Diagnostic:
    first, found = places[0]
    ids = list(dict.fromkeys(asset.id for asset, _ in places))
    many = exceeds(proposal.limits.blank, type, len(ids), proposal.sizes_before.get(type, 0))
    return Diagnostic(
        code="VAL024",
        what=f"`{field}` of {listed([f'`{id}`' for id in ids])} is empty, and was not before",
        why="a field that becomes empty in many assets at once has usually lost its value by mistake"
        if many
        else f"it was not empty in {proposal.base}",
        fix="check where the value comes from" + ("; or raise `blank` in lehr.yaml" if many else ""),
        subject=first.id if len(ids) == 1 else type,
        at=proposal.place(first, found.pointer),
        severity=Severity.ERROR if many else Severity.WARNING,
    )


def _jump(
    proposal: DeltaProposal, type: str, field: str, places: list[tuple[Asset, _Difference]]
) -> Diagnostic:
    first, found = places[0]
    limits = proposal.limits.jump
    moves = [f"`{asset.id}` from {item.before:g} to {item.after:g}" for asset, item in places]
    return Diagnostic(
        code="VAL025",
        what=f"`{field}` jumps by more than a factor of {limits.factor:g}: {listed(moves)}",
        why="a number that changes so much at once is more often a mistake than intended",
        fix="change it in several steps; or, for a field that may jump, write "
        f"`jump: {{ignore: [{field}]}}` in lehr.yaml",
        subject=first.id if len({asset.id for asset, _ in places}) == 1 else type,
        at=proposal.place(first, found.pointer),
        severity=limits.severity,
    )
