"""The rules of good conduct: what a plugin reports and shows, how it fails and ends."""

from __future__ import annotations

import asyncio
import contextlib

from lehr.base.errors import LehrError
from lehr.model.asset import AssetKey, id_problem, partition_problem
from lehr.model.diff import Goal
from lehr.model.operation import Result
from lehr.testing.conformance.asset_plugin.interrupts import cancelled_at
from lehr.testing.conformance.asset_plugin.logs import logged
from lehr.testing.conformance.asset_plugin.subject import Aim, Subject, applied_rule, rule
from lehr.testing.conformance.rules import hold
from lehr.testing.plugins import FixedReader


@rule
async def traits_say_what_is_served(subject: Subject) -> None:
    """Its types are registered and have a production; its limits are more than nothing."""
    plugin, traits = subject.plugin, subject.plugin.traits
    hold(subject.asset.type in plugin.types, f"{plugin.types} name the type of the asset")
    for name in plugin.types:
        hold(name in subject.registry.types, f"the type {name} is registered")
        hold(not subject.registry.inert(name), f"the type {name} has a production")
    hold(Goal.PRESENT not in traits.goals, "the goals are those beyond PRESENT")
    limits = (traits.turns, traits.pushes, traits.diff_timeout, traits.push_timeout, traits.resync)
    hold(min(limits) > 0, f"{traits} leaves room for a turn and a push")


@rule
async def secrets_are_not_shown(subject: Subject) -> None:
    """In no diff, text, message, exception (its causes included) or line of a log, whatever goes wrong."""
    with logged() as lines:
        await _every_way(subject)
        await subject.restart()
    for text in (*subject.shown, *lines):
        hold(not subject.secret or subject.secret not in text, f"no secret is shown, as in {text!r}")


@applied_rule
async def trouble_is_named(subject: Subject) -> None:
    """Trouble is a `LehrError` or an outcome, never a bare exception; when it is over, a push converges."""
    for trouble in subject.troubles:
        with trouble():
            for asset in (subject.asset, subject.changed):
                with contextlib.suppress(LehrError):
                    await subject.diff(asset)
                with contextlib.suppress(LehrError):
                    outcome = await subject.push(asset)
                    if outcome.result is Result.DONE:
                        hold((await subject.diff(asset)).empty, "what ends done in spite of trouble is done")
        await subject.apply(subject.asset)


@applied_rule
async def watch_names_assets(subject: Subject) -> None:
    """Its hints are keys of assets; it touches nothing, and can be broken off and begun again."""
    hints: list[object] = []
    for _ in range(2):
        listening = asyncio.ensure_future(_listen(subject, hints))
        await subject.clock.sleep(subject.linger)
        subject.disturb()
        await subject.clock.sleep(subject.linger)
        with subject.unchanged("watch never writes"):
            await subject.clock.sleep(subject.linger)
        listening.cancel()
        await asyncio.wait({listening})
        hold(listening.cancelled() or listening.exception() is None, "watch raises nothing")
        await subject.apply(subject.asset)
    for hint in hints:
        sound = isinstance(hint, AssetKey) and not (partition_problem(hint.partition) or id_problem(hint.id))
        hold(sound, f"a hint is the key of an asset, not {hint!r}")


@applied_rule
async def close_can_be_repeated(subject: Subject) -> None:
    """`close` may be called twice, and production continues."""
    with subject.unchanged("close leaves production alone"):
        await subject.plugin.close()
        await subject.plugin.close()


async def _every_way(subject: Subject) -> None:
    """Make the plugin report everything that it can."""
    for asset in (subject.asset, subject.changed):
        await subject.diff(asset)
        await subject.texts(asset)
        await subject.push(asset)
        subject.disturb()
        await subject.diff(asset)
        await subject.texts(asset)
    push = subject.begin(Aim(subject.asset))
    await cancelled_at(1, subject.push(subject.asset, push=push))
    await subject.settle(push.operation)
    for goal in Goal:
        await _tried(subject, Aim(subject.asset, goal))
    await _tried(subject, Aim(subject.asset), FixedReader([], subject.registry))
    for trouble in subject.troubles:
        await subject.apply(subject.asset)
        with trouble():
            await _tried(subject, Aim(subject.changed))


async def _tried(subject: Subject, aim: Aim, reader: FixedReader | None = None) -> None:
    # Of any kind: another rule judges the exceptions; their text has been recorded.
    with contextlib.suppress(Exception):
        await subject.diff(*aim, reader=reader)
    with contextlib.suppress(Exception):
        await subject.texts(*aim)
    with contextlib.suppress(Exception):
        await subject.push(*aim, reader=reader)


async def _listen(subject: Subject, hints: list[object]) -> None:
    async for hint in subject.plugin.watch():
        hints.append(hint)  # noqa: PERF401 - one by one, as the listening is broken off
