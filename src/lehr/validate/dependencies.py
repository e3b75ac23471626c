"""Dependencies can be met: they have no cycles, their rules compile, their versions are reachable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lehr.base.cycles import shortest_cycle
from lehr.base.diagnostics import Diagnostic, Severity
from lehr.base.versions import precedes
from lehr.cel import compile_condition
from lehr.model.addons import DEPENDS_ON, RULE_VARIABLES, DependsOn, is_turned_down
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange
from lehr.model.types import Mention
from lehr.validate.proposal import AssetView, DeltaProposal

_POINTER = f"/addons/{DEPENDS_ON}"
_MOST_NAMED = 20
_VERSION_FIELD = b'"version":'


def depends_in_cycle(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL003: no asset depends on itself, directly or through others.

    A new cycle contains an asset whose dependencies have changed, so the search starts only from these and
    follows dependencies; each asset is visited once.
    """
    changed = {
        change.id: change.after
        for change in proposal.changes()
        if change.after is not None and not _same_dependencies(proposal, change)
    }
    reported: set[frozenset[AssetId]] = set()
    for last in _closing(proposal, changed):
        cycle = shortest_cycle(last, proposal.dependencies)
        new = changed.keys() & set(cycle)
        if new and frozenset(cycle) not in reported:
            reported.add(frozenset(cycle))
            first = cycle.index(min(new))
            shown = [*cycle[first:-1], *cycle[: first + 1]]
            yield _circular(proposal, changed[shown[0]], shown)


def _closing(proposal: DeltaProposal, starts: Iterable[AssetId]) -> Iterator[AssetId]:
    """Assets on a back edge of the search: every cycle has one."""
    done: set[AssetId] = set()
    for start in starts:
        way = {} if start in done else {start: iter(proposal.dependencies(start))}
        while way:
            id, targets = next(reversed(way.items()))
            target = next(targets, None)
            if target is None:
                done.add(id)
                del way[id]
            elif target in way:
                yield id
            elif target not in done:
                way[target] = iter(proposal.dependencies(target))


def depends_on_turned_down(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL004, a warning: no asset that stays depends on one that is being turned down."""
    for asset, mention in proposal.changed_mentions():
        target = proposal.asset(mention.target)
        needs = mention.goes_first and not mention.follows
        if target is not None and is_turned_down(target) and needs and not is_turned_down(asset):
            yield _on_turned_down(proposal, asset, mention)
    for change in proposal.changes():
        if change.after is None or not is_turned_down(change.after) or is_turned_down(change.before):
            continue
        for asset, mention in proposal.mentioned_by_others(change.id):
            if mention.goes_first and not mention.follows and not is_turned_down(asset):
                yield _on_turned_down(proposal, asset, mention)


def stops_following(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL007: an asset that follows one in turndown keeps following it until that one has left intent.

    An asset that stops following earlier is pushed before the removal, and never again: a web server that was
    reloaded while a virtual host still existed would continue to serve it.
    """
    for change in proposal.changes():
        if change.before is None or change.after is None or is_turned_down(change.after):
            continue
        before = {item.target for item in proposal.registry.mentions(change.before) if item.follows}
        now = {item.target for item in proposal.mentions.get(change.id, ())}
        for target in sorted(before - now):
            if is_turned_down(proposal.asset(target)):
                yield Diagnostic(
                    code="VAL007",
                    what=f"`{change.id}` no longer refers to `{target}`, which is being turned down",
                    why=f"`{change.id}` would be pushed before `{target}` is removed, and not again later",
                    fix=f"keep the reference until `{target}` has been removed, then delete both",
                    subject=change.id,
                    at=proposal.place(change.after, "/payload"),
                )


def _same_dependencies(proposal: DeltaProposal, change: AssetChange) -> bool:
    now = proposal.dependencies(change.id)
    return not now or (change.before is not None and proposal.registry.dependencies(change.before) == now)


def _circular(proposal: DeltaProposal, asset: Asset, cycle: Sequence[AssetId]) -> Diagnostic:
    alone = len(cycle) == 2
    left_out = len(cycle) - _MOST_NAMED
    shown = [*cycle[: _MOST_NAMED - 1], f"({left_out:,} more)", cycle[-1]] if left_out > 1 else cycle
    chain = " -> ".join(shown)
    return Diagnostic(
        code="VAL003",
        what=f"`{asset.id}` depends on itself" + ("" if alone else f": {chain}"),
        why="each would wait for the other forever" if not alone else "it would wait for itself forever",
        fix=f"remove one of them from {DEPENDS_ON}",
        subject=asset.id,
        at=proposal.place(asset, _POINTER),
    )


def _on_turned_down(proposal: DeltaProposal, asset: Asset, mention: Mention) -> Diagnostic:
    return Diagnostic(
        code="VAL004",
        what=f"`{asset.id}` depends on `{mention.target}`, which is being turned down",
        why="once that is gone, there is nothing to depend on; until then, this blocks the turndown",
        fix=f"remove it from {DEPENDS_ON}, or turn `{asset.id}` down as well",
        subject=asset.id,
        at=proposal.place(asset, mention.path),
        severity=Severity.WARNING,
    )


def rule_is_not_understood(view: AssetView) -> Iterator[Diagnostic]:
    """VAL006: every rule compiles. Whether it has an answer is known only when it is evaluated."""
    asset = view.change.after
    addon = None if asset is None else view.registry.addon(asset, DEPENDS_ON, DependsOn)
    if asset is None or addon is None:
        return
    for place, rule in enumerate(addon.rules):
        try:
            compile_condition(rule.allow, RULE_VARIABLES)
        except ValueError as error:
            yield Diagnostic(
                code="VAL006",
                what=f"the rule of `{asset.id}` on `{rule.asset}` is not valid",
                why=str(error),
                fix="write it in CEL over `mine` and `theirs`: theirs.empty || mine.capacity > 0",
                subject=asset.id,
                at=view.place(asset, f"/addons/{DEPENDS_ON}/rules/{place}/allow"),
            )


def needed_version_is_never_reached(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL005: no asset needs a version above the one in intent.

    Only types whose payload has a `version` can be judged before production is read.
    """
    asked: set[tuple[AssetId, AssetId]] = set()
    for asset, mention in proposal.changed_mentions():
        yield from _judge(proposal, asset, mention.target, asked)
    for change in proposal.changes():
        if _version(change.before) != _version(change.after):
            for asset, _mention in proposal.mentioned_by(change.id):
                yield from _judge(proposal, asset, change.id, asked)


def _version(asset: Asset | None) -> Any:
    """The version in intent; None if it has none."""
    if asset is None or _VERSION_FIELD not in asset.body:
        return None
    return asset.document()["payload"].get("version")


def _judge(
    proposal: DeltaProposal, asset: Asset, target: AssetId, asked: set[tuple[AssetId, AssetId]]
) -> Iterator[Diagnostic]:
    if (asset.id, target) in asked:
        return
    asked.add((asset.id, target))
    addon = proposal.registry.addon(asset, DEPENDS_ON, DependsOn)
    given = _version(proposal.asset(target))
    if addon is None or given is None:
        return
    for place, need in enumerate(addon.versions):
        if need.asset == target and precedes(str(given), need.at_least):
            pointer = f"/addons/{DEPENDS_ON}/versions/{place}/at_least"
            yield Diagnostic(
                code="VAL005",
                what=f"`{asset.id}` needs version {need.at_least} of `{target}`, which gets {given}",
                why="it would wait forever: nothing requests a newer version",
                fix=f"give `{target}` version {need.at_least}, or require a lower one",
                subject=asset.id,
                at=proposal.place(asset, pointer),
            )
