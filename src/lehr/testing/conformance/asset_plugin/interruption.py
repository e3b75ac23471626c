"""The rules of a `push` that does not end, and of `status`, which reports whether it may still run."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable

from lehr.base.errors import LehrError
from lehr.model.operation import Operation, Progress
from lehr.sdk.plugin import Fencing
from lehr.testing.conformance.asset_plugin.interrupts import cancelled_at, overtaken_at, spread, waits_of
from lehr.testing.conformance.asset_plugin.subject import Aim, Journey, Subject, applied_rule, rule
from lehr.testing.conformance.rules import hold
from lehr.testing.plugins import FixedPush, FixedReader, push_of, target_of


@rule
async def push_survives_cancellation(subject: Subject) -> None:
    """Cancelled at any await, and ended according to `status`, a push can simply be repeated."""
    async for _, journey in _interrupted(subject, subject.journeys()):
        await subject.apply(*journey.end)


@rule
async def turndown_survives_cancellation(subject: Subject) -> None:
    """So can a push to any goal that the traits name, and one that takes it back."""
    async for _, journey in _interrupted(subject, subject.turndowns()):
        await subject.apply(*journey.end)


@rule
async def push_survives_new_intent(subject: Subject) -> None:
    """After a push that was cancelled at any await, a push of other content converges as well."""
    async for _, _ in _interrupted(subject, subject.journeys()[1:]):
        await subject.apply(subject.asset)


@rule
async def push_survives_a_crash(subject: Subject) -> None:
    """Where a push was broken off, the plugin of a new process finds its way, to every goal."""
    async for operation, journey in _interrupted(subject, [*subject.journeys(), *subject.turndowns()]):
        await subject.restart()
        await subject.settle(operation)
        await subject.diff(*journey.end)
        await subject.apply(*journey.end)


@rule
async def ended_operations_change_nothing(subject: Subject) -> None:
    """Once `status` of a cancelled push is ENDED, production stays as it is, and so does the answer."""
    async for operation, _ in _interrupted(subject, subject.journeys()):
        with subject.unchanged("an operation that has ended changes nothing"):
            await subject.clock.sleep(subject.linger)
        hold(await subject.plugin.status(operation) is Progress.ENDED, "what has ended does not run again")


@rule
async def late_writers_are_fenced_out(subject: Subject) -> None:
    """A push that pauses at any await while one of a newer lease runs keeps to the fencing declared.

    NATIVE: the newer one's values stay. COMPARE_AND_SWAP: one of the two has won completely.
    """
    fencing = subject.plugin.traits.fencing
    if fencing is Fencing.NONE:
        return
    async for late, newer in _overtaken(subject):
        found = await subject.diff(*newer)
        if fencing is Fencing.COMPARE_AND_SWAP and not found.empty:
            found = await subject.diff(*late)
        hold(found.empty, f"with {fencing.value} fencing, a late writer changes nothing: {found.changes}")


@applied_rule
async def finished_operations_have_ended(subject: Subject) -> None:
    """`status` is ENDED of an operation that ended, that raised, or that the plugin never received."""
    for id in ("operation-1", "never-received"):
        operation = push_of(target_of(subject.asset), id).operation
        hold(await subject.plugin.status(operation) is Progress.ENDED, f"status of {id} is ended")
    raised = subject.begin(Aim(subject.asset))
    with contextlib.suppress(LehrError):
        await subject.push(subject.asset, push=raised, reader=FixedReader([], subject.registry))
    await subject.settle(raised.operation)


async def _interrupted(
    subject: Subject, journeys: Iterable[Journey]
) -> AsyncIterator[tuple[Operation, Journey]]:
    """Each journey, broken off at each await, after `status` reported its end."""
    for journey in journeys:
        await subject.start(journey)
        waits = await waits_of(subject.push(*journey.end))
        for step in spread(waits, subject.interruptions):
            await subject.start(journey)
            push = subject.begin(journey.end)
            cancelled = await cancelled_at(step, subject.push(*journey.end, push=push))
            await subject.settle(push.operation)
            yield push.operation, journey
            if not cancelled:
                break
        else:
            hold(subject.interruptions is not None, "a push does not wait for ever")


async def _overtaken(subject: Subject) -> AsyncIterator[tuple[Aim, Aim]]:
    """A push that is overtaken at each await, by a push of other content by another process."""
    late, newer = Aim(subject.asset), Aim(subject.changed)

    async def pushed(aim: Aim, push: FixedPush) -> None:
        with contextlib.suppress(Exception):  # to be refused is what fencing is for
            await subject.push(*aim, push=push)
        await subject.settle(push.operation)

    async def overtake() -> None:
        standing, subject.plugin = subject.plugin, subject.new_plugin()
        try:
            await pushed(newer, subject.begin(newer))
        finally:
            await subject.plugin.close()
            subject.plugin = standing

    await subject.start(Journey(None, late))
    waits = await waits_of(subject.push(*late))
    for step in spread(waits, subject.interruptions):
        await subject.start(Journey(None, late))
        if not await overtaken_at(step, pushed(late, subject.begin(late)), overtake):
            break
        yield late, newer
