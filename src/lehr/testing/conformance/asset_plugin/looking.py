"""The rules of `diff`: it only looks, answers the same about the same, and answers plainly."""

from __future__ import annotations

import msgspec

from lehr.model.diff import Diff, Effects, Goal
from lehr.testing.conformance.asset_plugin.interrupting import cancelled_at, spread, waits_of
from lehr.testing.conformance.asset_plugin.subject import Rule, Subject, rule, stalls
from lehr.testing.conformance.holding import hold
from lehr.testing.plugins import FixedReader

_MOST_DIFF_BYTES = 16_384


@rule
async def diff_never_writes(subject: Subject) -> None:
    """`diff` only looks, whether anything was applied or not, and for every goal it knows."""
    for applied in (False, True):
        if applied:
            await subject.apply(subject.asset)
        before = subject.observe()
        for asset in (subject.asset, subject.changed):
            for goal in (Goal.PRESENT, *subject.goals):
                await subject.diff(asset, goal)
        hold(subject.observe() == before, "diff never writes")


@rule
async def diff_can_be_repeated(subject: Subject) -> None:
    """`diff`, called twice with nothing changed, returns and reads the same twice."""
    for asset in (subject.asset, subject.changed):
        readers = (subject.reader(asset), subject.reader(asset))
        first, second = [await subject.diff(asset, reader=reader) for reader in readers]
        hold(first.digest() == second.digest(), f"diff says the same twice, not {first} and {second}")
        reads = [sorted(set(reader.reads)) for reader in readers]
        hold(reads[0] == reads[1], f"diff reads the same twice, not {reads[0]} and {reads[1]}")


@rule
async def diff_survives_cancellation(subject: Subject) -> None:
    """Cancelled at any await, `diff` has changed nothing, and the next one returns what it did before."""
    expected = await subject.diff(subject.asset)
    before = subject.observe()
    waits = await waits_of(subject.diff(subject.asset))
    for step in spread(waits, subject.interruptions):
        cancelled = await cancelled_at(step, subject.diff(subject.asset))
        found = await subject.diff(subject.asset)
        hold(found.digest() == expected.digest(), f"after a cancelled one, diff says {expected}, not {found}")
        if not cancelled:
            break
    hold(subject.observe() == before, "a cancelled diff never writes")


@rule
async def diffs_are_plain(subject: Subject) -> None:
    """Short plain data that outlives JSON; each change differs in something; no changes, no effects."""
    _check_plain(await subject.diff(subject.asset))
    await subject.apply(subject.asset)
    _check_plain(await subject.diff(subject.asset))
    for goal in subject.goals:
        _check_plain(await subject.diff(subject.asset, goal))
    _check_plain(await subject.diff(subject.changed))
    subject.disturb()
    _check_plain(await subject.diff(subject.asset))


@rule
async def intent_comes_through_the_reader(subject: Subject) -> None:
    """`diff` reads its own asset through the reader; without it there is nothing to go by."""
    reader = subject.reader(subject.asset)
    await subject.diff(subject.asset, reader=reader)
    hold(subject.asset.id in reader.reads, "diff reads its asset through the reader")
    nothing = FixedReader([], subject.registry)
    before = subject.observe()
    await stalls(subject.diff(subject.asset, reader=nothing), "diff of an asset that is not there")
    await stalls(subject.push(subject.asset, reader=nothing), "push of an asset that is not there")
    hold(subject.observe() == before, "an asset that is not in the incarnation touches nothing")


@rule
async def memory_is_only_a_hint(subject: Subject) -> None:
    """The plugin of a new process finds what the one before found, and continues from there."""
    await subject.apply(subject.asset)
    await subject.restart()
    hold((await subject.diff(subject.asset)).empty, "a new plugin finds what another has applied")
    expected = await subject.diff(subject.changed)
    await subject.restart()
    found = await subject.diff(subject.changed)
    hold(found.digest() == expected.digest(), f"a new plugin says {expected}, not {found}")
    await subject.apply(subject.changed)


def _check_plain(diff: Diff) -> None:
    encoded = msgspec.json.encode(diff)
    hold(len(encoded) <= _MOST_DIFF_BYTES, f"a diff is short, not {len(encoded)} bytes")
    hold(msgspec.json.decode(encoded, type=Diff) == diff, f"a diff is the same after JSON, unlike {diff}")
    paths = [change.path for change in diff.changes]
    hold(len(set(paths)) == len(paths), f"each path differs once, not {paths}")
    for change in diff.changes:
        path = change.path
        hold(bool(path) and path == path.strip("/") and path.isprintable(), f"{path!r} is a path to read")
        hold(change.intended != change.observed, f"{change} differs in something")
    effects = diff.effects
    hold(effects.capacity is None or type(effects.capacity) is int, f"{effects} counts whole units")
    if diff.empty:
        nothing = Effects(version_from=effects.version_from, version_to=effects.version_to)
        hold(effects == nothing, f"a diff without changes has no effects, unlike {effects}")


RULES: tuple[Rule, ...] = (
    diff_never_writes,
    diff_can_be_repeated,
    diff_survives_cancellation,
    diffs_are_plain,
    intent_comes_through_the_reader,
    memory_is_only_a_hint,
)
