"""The rules of `diff`: it only looks, answers the same about the same, and answers plainly."""

from __future__ import annotations

from collections.abc import Awaitable

import msgspec

from lehr.base.errors import LehrError
from lehr.model.diff import Diff, Effects, Goal
from lehr.testing.conformance.asset_plugin.interrupts import cancelled_at, spread, waits_of
from lehr.testing.conformance.asset_plugin.subject import Aim, Subject, applied_rule, rule, stalls
from lehr.testing.conformance.rules import hold
from lehr.testing.plugins import FixedReader

_MOST_DIFF_BYTES = 16_384
_MOST_WAIT = 0.5  # seconds between two looks, however long a plugin would have waited


@rule
async def diff_never_writes(subject: Subject) -> None:
    """`diff` only looks, whether anything was applied or not, and for every goal it knows."""
    for applied in (False, True):
        if applied:
            await subject.apply(subject.asset)
        with subject.unchanged("diff never writes"):
            for asset in (subject.asset, subject.changed):
                for goal in (Goal.PRESENT, *subject.goals):
                    await subject.diff(asset, goal)


@rule
async def diff_can_be_repeated(subject: Subject) -> None:
    """`diff`, called twice with nothing changed, returns and reads the same twice."""
    for asset in (subject.asset, subject.changed):
        readers = (subject.reader(asset), subject.reader(asset))
        first, second = [await subject.diff(asset, reader=reader) for reader in readers]
        hold(first.digest() == second.digest(), f"diff returns the same twice, not {first} and {second}")
        reads = [sorted(set(reader.reads)) for reader in readers]
        hold(reads[0] == reads[1], f"diff reads the same twice, not {reads[0]} and {reads[1]}")


@rule
async def many_diffs_are_those_of_one_by_one(subject: Subject) -> None:
    """`diff_many` answers what `diff` answers, reads the same, at most once each, and never writes."""
    await _compare_many(subject)
    await subject.apply(subject.asset)
    await _compare_many(subject)
    subject.disturb()
    await _compare_many(subject)


@rule
async def diff_survives_cancellation(subject: Subject) -> None:
    """Cancelled at any await, `diff` has changed nothing, and the next one returns what it did before."""
    expected = await subject.diff(subject.asset)
    with subject.unchanged("a cancelled diff never writes"):
        waits = await waits_of(subject.diff(subject.asset))
        for step in spread(waits, subject.interruptions):
            cancelled = await cancelled_at(step, subject.diff(subject.asset))
            found = await subject.diff(subject.asset)
            hold(
                found.digest() == expected.digest(),
                f"after a cancelled call, diff returns {expected}, not {found}",
            )
            if not cancelled:
                break


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
    with subject.unchanged("an asset that is not in the incarnation touches nothing"):
        await stalls(subject.diff(subject.asset, reader=nothing), "diff of an asset that is not there")
        await stalls(subject.push(subject.asset, reader=nothing), "push of an asset that is not there")


@applied_rule
async def memory_is_only_a_hint(subject: Subject) -> None:
    """The plugin of a new process finds what the one before found, and continues from there."""
    await subject.restart()
    hold((await subject.diff(subject.asset)).empty, "a new plugin finds what another has applied")
    expected = await subject.diff(subject.changed)
    await subject.restart()
    found = await subject.diff(subject.changed)
    hold(found.digest() == expected.digest(), f"a new plugin returns {expected}, not {found}")
    await subject.apply(subject.changed)


@rule
async def crashes_cost_no_push(subject: Subject) -> None:
    """After a crash that production repairs, diffs request another look until they are empty.

    Tried where the subject has a `crash`.
    """
    if subject.crash is None:
        return
    await subject.apply(subject.asset)
    before = subject.observe()
    for in_a_new_process in (False, True):
        subject.crash()
        if in_a_new_process:
            await subject.restart()
        await _recovered(subject)
        hold(subject.observe() == before, "a diff is empty only when production is back as it was")


async def _recovered(subject: Subject) -> None:
    """Look again, as the diffs request, until one is empty."""
    deadline = subject.clock.monotonic() + subject.patience
    while not (found := await subject.diff(subject.asset)).empty:
        wait = found.look_again
        hold(wait is not None and wait > 0, f"a diff of what is recovering has look_again, unlike {found}")
        hold(subject.clock.monotonic() < deadline, f"production recovers within {subject.patience:g} seconds")
        await subject.clock.sleep(min(wait or 0.0, _MOST_WAIT))


async def _compare_many(subject: Subject) -> None:
    """Ask for all goals of the asset, for its other content, and for an asset that is not there."""
    aims = [*(Aim(subject.asset, goal) for goal in (Goal.PRESENT, *subject.goals)), Aim(subject.changed)]
    missing = len(aims)
    aims.append(Aim(subject.asset))

    def reader(index: int) -> FixedReader:
        return FixedReader([], subject.registry) if index == missing else subject.reader(aims[index].asset)

    before = subject.observe()
    readers = [reader(index) for index in range(len(aims))]
    found = await subject.diff_many(list(zip(aims, readers, strict=True)))
    hold(subject.observe() == before, "diff_many never writes")
    indexes = [index for index, _answer in found]
    hold(len(set(indexes)) == len(indexes), f"diff_many answers each request once, not {indexes}")
    hold(set(indexes) <= set(range(len(aims))), f"diff_many answers what it was asked for, not {indexes}")
    for index, answer in found:
        alone = reader(index)
        expected = await _answer(subject.diff(*aims[index], reader=alone))
        same = type(answer) is type(expected)
        if isinstance(answer, Diff) and isinstance(expected, Diff):
            same = answer.digest() == expected.digest()
        hold(same, f"diff_many answers what diff does for {aims[index]}: {expected}, not {answer}")
        reads = [sorted(set(reader.reads)) for reader in (readers[index], alone)]
        hold(reads[0] == reads[1], f"diff_many reads what diff reads, {reads[1]}, not {reads[0]}")


async def _answer(call: Awaitable[Diff]) -> Diff | LehrError:
    try:
        return await call
    except LehrError as error:
        return error


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
