"""The dependency resolver: the order in which assets are pushed.

It compares the diff of the asset to push with those of its dependencies *and* its dependants:

| order | the asset waits while |
|---|---|
| static | an asset that goes first differs, directly or indirectly |
| capacity | it grows before an asset that it sends load to, or shrinks before one that sends load to it |
| version | it needs a version that another asset has not reached, or another asset needs its version |
| rule | a condition in CEL over the two diffs is not true |
| turndown | an asset that once referred to it differs, because its production may still refer to it |

Only the static order is transitive: it passes through a bounded number of assets that do not differ
themselves. Indirect dependencies whose own last turn found this content in place are not compared again.
It is also the only order that an asset satisfies once it has newer content than the push: it will not return
to the older one.

An unknown effect on capacity counts as growing and as shrinking. The Enforcer finds and names two assets that
wait for each other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec

from lehr.base.errors import LehrError
from lehr.base.versions import precedes
from lehr.cel import compile_condition
from lehr.model.addons import DEPENDS_ON, RULE_VARIABLES, DependsOn, Rule
from lehr.model.asset import AssetId
from lehr.model.decision import Verdict
from lehr.model.diff import Diff, Goal
from lehr.model.reason import Reason
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest, Referrer

_BY_CAPACITY = f"/addons/{DEPENDS_ON}/capacity/"
_BY_VERSION = f"/addons/{DEPENDS_ON}/versions/"

MOST = 1000
"""Maximum number of direct and indirect dependencies that are checked."""

Judge = Callable[[Diff], str | None]
"""Why another asset's diff makes the asset wait; None when it does not."""


class _Question(msgspec.Struct, frozen=True):
    """Another asset to check, and how to judge its diff.

    Attributes:
        through: for messages, the asset that depends on it; empty for the asset to push.
        may_be_past: an asset that has newer content of its own does not make the asset wait.
    """

    id: AssetId
    reason: str
    unblock: str
    judge: Judge
    through: str = ""
    may_be_past: bool = False


class _Obstacle(msgspec.Struct, frozen=True):
    id: AssetId
    reason: str
    message: str
    unblock: str


class DependsOnCheck(CheckPlugin):
    """Waits until the order of pushes allows this one."""

    name = "depends-on"

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        questions = list(_questions(request, read))
        if not questions:
            return []
        await read.look_at([question.id for question in questions])
        found = [await _ask(question, read) for question in questions]
        obstacles = [obstacle for obstacle in found if obstacle is not None]
        if request.target.goal is Goal.PRESENT:
            obstacles += [obstacle async for obstacle in _beyond(request, read, obstacles)]
        return [_verdict(obstacles)]


def _questions(request: CheckRequest, read: CheckReader) -> Iterator[_Question]:
    if request.target.goal is not Goal.PRESENT:
        yield from _turndown(read)
        return
    for id in read.dependencies(request.asset):
        unblock = f"wait until {id} converges"
        yield _Question(id, Reason.DEPENDENCY_DIFFERS, unblock, _differs, may_be_past=True)
    addon = read.addon(request.asset, DEPENDS_ON, DependsOn) or DependsOn()
    yield from _capacity(request.diff, addon, read)
    yield from _versions(request.diff, addon, read)
    yield from _rules(request.diff, addon)


async def _beyond(
    request: CheckRequest, read: CheckReader, obstacles: list[_Obstacle]
) -> AsyncIterator[_Obstacle]:
    """Obstacles among indirect dependencies: those of idle dependencies, breadth first."""
    first, waits = read.dependencies(request.asset), {obstacle.id for obstacle in obstacles}
    met = {request.asset.id, *first}
    ahead = [id for id in first if id not in waits]
    for id in ahead:
        asset = read.asset(id)
        for further in () if asset is None else read.dependencies(asset):
            if further in met:
                continue
            if len(met) > MOST:
                message = f"it has more than {MOST} direct and indirect dependencies"
                unblock = "reduce the number of its direct and indirect dependencies"
                yield _Obstacle(further, Reason.TOO_MANY_DEPENDENCIES, message, unblock)
                return
            met.add(further)
            question = _Question(
                further,
                Reason.DEPENDENCY_DIFFERS,
                f"wait until {further} converges",
                _differs,
                f", which {id} needs,",
            )
            obstacle = await _ask(question, read, indirect=True)
            if obstacle is None:
                ahead.append(further)
            elif obstacle.reason is not Reason.DEPENDENCY_MISSING:
                yield obstacle


# --- orders --------------------------------------------------------------------


def _differs(diff: Diff) -> str | None:
    return None if diff.empty else f"differs in {diff.summary()}"


def _turndown(read: CheckReader) -> Iterator[_Question]:
    for referrer in read.referrers():
        if not referrer.mentions:
            id = referrer.asset.id
            yield _Question(
                id,
                Reason.DEPENDENCY_DIFFERS,
                f"wait until {id}, which once referred to it, converges",
                _differs,
            )


def _capacity(mine: Diff, addon: DependsOn, read: CheckReader) -> Iterator[_Question]:
    if _grows(mine):
        for name in addon.capacity:
            id = AssetId(name)
            yield _Question(
                id,
                Reason.CAPACITY_ORDER,
                f"wait until {id} has grown",
                lambda diff: "must grow first" if _grows(diff) else None,
            )
    if _shrinks(mine):
        for referrer in _referrers(read, _BY_CAPACITY):
            id = referrer.asset.id
            yield _Question(
                id,
                Reason.CAPACITY_ORDER,
                f"wait until {id} has shrunk",
                lambda diff: "must shrink first" if _shrinks(diff) else None,
            )


def _grows(diff: Diff) -> bool:
    capacity = diff.effects.capacity
    return not diff.empty and (capacity is None or capacity > 0)


def _shrinks(diff: Diff) -> bool:
    capacity = diff.effects.capacity
    return not diff.empty and (capacity is None or capacity < 0)


def _versions(mine: Diff, addon: DependsOn, read: CheckReader) -> Iterator[_Question]:
    for need in addon.versions:
        id = AssetId(need.asset)
        yield _Question(
            id,
            Reason.VERSION_ORDER,
            f"wait until {id} reaches version {need.at_least}",
            _behind(need.at_least),
        )
    before, after = mine.effects.version_from, mine.effects.version_to
    if before is None or after is None or not precedes(after, before):
        return
    for referrer in _referrers(read, _BY_VERSION):
        id = referrer.asset.id
        needed = _needed(referrer, read)
        yield _Question(
            id,
            Reason.VERSION_ORDER,
            f"wait until {id} no longer needs more than version {after}",
            _may_need(needed, after),
        )


def _behind(needed: str) -> Judge:
    def judge(diff: Diff) -> str | None:
        observed = diff.effects.version_from
        if observed is None:
            return "does not report its version"
        return f"has version {observed}, not {needed} yet" if precedes(observed, needed) else None

    return judge


def _may_need(needed: list[str], after: str) -> Judge:
    def judge(diff: Diff) -> str | None:
        if not diff.empty:
            return "may still run content that needs more: it differs"
        more = [version for version in needed if precedes(after, version)]
        return f"needs version {more[0]}" if more else None

    return judge


def _rules(mine: Diff, addon: DependsOn) -> Iterator[_Question]:
    for rule in addon.rules:
        id = AssetId(rule.asset)
        yield _Question(id, Reason.RULE_NOT_MET, f"wait until `{rule.allow}` is true", _unless(rule, mine))


def _unless(rule: Rule, mine: Diff) -> Judge:
    def judge(theirs: Diff) -> str | None:
        try:
            allowed = compile_condition(rule.allow, RULE_VARIABLES)(
                {"mine": _plain(mine), "theirs": _plain(theirs)}
            )
        except ValueError as error:
            return f"cannot be checked by `{rule.allow}`: {error}"
        return None if allowed else (rule.message or f"does not meet `{rule.allow}`")

    return judge


def _plain(diff: Diff) -> dict[str, Any]:
    """A diff as rules see it."""
    effects = diff.effects
    return {
        "empty": diff.empty,
        "capacity": effects.capacity,
        "version_from": effects.version_from,
        "version_to": effects.version_to,
        "destructive": effects.destructive,
        "disruptive": effects.disruptive,
        "changes": [change.path for change in diff.changes],
    }


def _referrers(read: CheckReader, path: str) -> list[Referrer]:
    return [item for item in read.referrers() if any(m.path.startswith(path) for m in item.mentions)]


def _needed(referrer: Referrer, read: CheckReader) -> list[str]:
    addon = read.addon(referrer.asset, DEPENDS_ON, DependsOn)
    targets = {mention.target for mention in referrer.mentions}
    return [] if addon is None else [need.at_least for need in addon.versions if need.asset in targets]


# --- answers -------------------------------------------------------------------


async def _ask(question: _Question, read: CheckReader, *, indirect: bool = False) -> _Obstacle | None:
    id = question.id
    try:
        diff = await read.diff(id, own=indirect, settled=indirect)
        if question.may_be_past and diff is not None and question.judge(diff) is not None:
            diff = await read.diff(id, own=True)
    except LehrError as error:
        # One asset that cannot be read must not hide the other obstacles.
        return _Obstacle(
            id,
            Reason.DEPENDENCY_UNREADABLE,
            f"{id} cannot be compared: {error}",
            f"wait until {id} can be compared again",
        )
    if diff is None:
        return _Obstacle(
            id,
            Reason.DEPENDENCY_MISSING,
            f"{id} is not in intent",
            f"declare {id}, or remove it from {DEPENDS_ON}",
        )
    trouble = question.judge(diff)
    return (
        None
        if trouble is None
        else _Obstacle(id, question.reason, f"{id}{question.through} {trouble}", question.unblock)
    )


_WORST = (
    Reason.DEPENDENCY_MISSING,
    Reason.DEPENDENCY_UNREADABLE,
    Reason.TOO_MANY_DEPENDENCIES,
    Reason.RULE_NOT_MET,
    Reason.VERSION_ORDER,
    Reason.CAPACITY_ORDER,
    Reason.DEPENDENCY_DIFFERS,
)


def _verdict(obstacles: list[_Obstacle]) -> Verdict:
    if not obstacles:
        return Verdict(DependsOnCheck.name, allow=True, message="no other asset must go first")
    # The reason is the one that is hardest to fix; the message lists all.
    return Verdict(
        DependsOnCheck.name,
        allow=False,
        reason=min((item.reason for item in obstacles), key=_WORST.index),
        message="; ".join(dict.fromkeys(item.message for item in obstacles)),
        unblock="; ".join(dict.fromkeys(item.unblock for item in obstacles)),
        wait_for=tuple(dict.fromkeys(item.id for item in obstacles)),
    )
