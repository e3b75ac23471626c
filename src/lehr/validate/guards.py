"""Limits on how much one change removes, adds and enlarges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.text import listed
from lehr.model.addons import is_turned_down
from lehr.model.asset import Asset
from lehr.sdk.validator import Guard
from lehr.validate.proposal import DeltaProposal

WORKSPACE_FILE = "lehr.yaml"


def emptied(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL020: a partition that had assets still has some."""
    before = proposal.size_before()
    if before and not _size_after(proposal):
        yield Diagnostic(
            code="VAL020",
            what=f"nothing is declared; before, there were {before} assets",
            why="an empty result is more often a mistake than intended",
            fix="check whether files are missing, or the patterns in lehr.yaml match none",
            subject=proposal.partition,
            at=Position(WORKSPACE_FILE),
        )


def shrinks_too_much(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL021: one change lets go and turns down no more than the limits allow, in total and of each type.

    An asset that is gone after its turndown was counted when it was turned down.
    """
    lost = Counter(
        change.before.type
        for change in proposal.changes()
        if change.before is not None
        and not is_turned_down(change.before)
        and (change.after is None or is_turned_down(change.after))
    )
    if not _size_after(proposal):
        return
    for subject, count, whole, percent in _beyond(proposal, lost, proposal.limits.shrink):
        yield Diagnostic(
            code="VAL021",
            what=f"this change removes {count} of {_assets(proposal, whole, subject)}, "
            f"more than {percent:g} %",
            why="the removal of many assets at once is more often a mistake than intended",
            fix="split it into several changes, or raise `shrink` in lehr.yaml",
            subject=subject,
            at=Position(WORKSPACE_FILE),
        )


def grows_too_much(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL022: one change adds no more than the limits allow, in total and of each type.

    Types that are new may come in any number: there is nothing to compare them with.
    """
    added = Counter(
        change.after.type
        for change in proposal.changes()
        if change.before is None and change.after is not None
    )
    known = Counter({type: count for type, count in added.items() if proposal.sizes_before.get(type)})
    for subject, count, whole, percent in _beyond(proposal, known, proposal.limits.growth):
        yield Diagnostic(
            code="VAL022",
            what=f"this change adds {count} to {_assets(proposal, whole, subject)}, more than {percent:g} %",
            why="a sudden doubling more often means that something was read or generated twice",
            fix="check whether something is declared twice under other ids; or split it up, "
            "or raise `growth` in lehr.yaml",
            subject=subject,
            at=Position(WORKSPACE_FILE),
        )


def asset_grows_too_much(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL023: no asset grows too much in one change. One diagnostic for each type."""
    limits = proposal.limits.growth
    grown: dict[str, list[tuple[Asset, int]]] = {}
    for change in proposal.changes():
        if change.before is None or change.after is None or change.before.type != change.after.type:
            continue
        before, after = len(change.before.body), len(change.after.body)
        if after - before > limits.asset_floor and (after - before) * 100 > limits.asset_percent * before:
            grown.setdefault(change.after.type, []).append((change.after, before))
    for type, assets in grown.items():
        first, before = assets[0]
        names = listed([f"`{asset.id}`" for asset, _ in assets])
        yield Diagnostic(
            code="VAL023",
            what=f"{names} {'has' if len(assets) == 1 else 'have'} grown by more than "
            f"{limits.asset_percent:g} %: `{first.id}` from {before:,} to {len(first.body):,} bytes",
            why="what reads it in production may have a limit of its own, and a list that doubles is more "
            "often written twice than meant",
            fix="check what it contains twice, or raise `growth: {asset_percent: ...}` in lehr.yaml",
            subject=first.id if len(assets) == 1 else type,
            at=proposal.place(first, "/payload"),
        )


def exceeds(guard: Guard, type: str | None, count: int, whole: int) -> bool:
    """Whether `count` of `whole` assets are more than `guard` allows; for a type, if one is given."""
    percent, floor = (guard.percent, guard.floor) if type is None else guard.of(type)
    return count > floor and count * 100 > percent * whole


def _beyond(
    proposal: DeltaProposal, counts: Mapping[str, int], guard: Guard
) -> Iterator[tuple[str, int, int, float]]:
    """Subject, count, size before and allowed percent: of the whole if it exceeds, else of such types."""
    whole, total = proposal.size_before(), sum(counts.values())
    if exceeds(guard, None, total, whole):
        yield proposal.partition, total, whole, guard.percent
        return
    for type, count in sorted(counts.items()):
        before = proposal.sizes_before.get(type, 0)
        if exceeds(guard, type, count, before):
            yield type, count, before, guard.of(type)[0]


def _assets(proposal: DeltaProposal, count: int, subject: str) -> str:
    return f"{count} assets" + ("" if subject == proposal.partition else f" of type {subject}")


def _size_after(proposal: DeltaProposal) -> int:
    added = sum((change.before is None) - (change.after is None) for change in proposal.changes())
    return proposal.size_before() + added
