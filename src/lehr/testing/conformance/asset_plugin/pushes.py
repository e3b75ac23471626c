"""The rules of `push` that runs to its end: it converges, can be repeated, and obeys the goal."""

from __future__ import annotations

from lehr.base.errors import FencedError
from lehr.model.diff import Goal
from lehr.model.operation import Outcome, Result
from lehr.testing.conformance.asset_plugin.subject import Aim, Subject, applied_rule, rule, stalls
from lehr.testing.conformance.rules import hold


@rule
async def push_converges(subject: Subject) -> None:
    """From nothing, and from one content to another and back, the diff is empty after the push."""
    for asset in (subject.asset, subject.changed, subject.asset):
        hold(not (await subject.diff(asset)).empty, "what was not applied yet is a difference")
        await subject.apply(asset)


@applied_rule
async def push_is_idempotent(subject: Subject) -> None:
    """A second push changes nothing that counts."""
    with subject.unchanged("a push that finds nothing to do changes nothing"):
        await subject.apply(subject.asset)


@applied_rule
async def disturbance_is_seen_and_healed(subject: Subject) -> None:
    """A change behind the plugin's back is a difference, and a push reverts it."""
    with subject.unchanged("a push heals a disturbance"):
        subject.disturb()
        hold(not (await subject.diff(subject.asset)).empty, "diff sees a disturbance")
        await subject.apply(subject.asset)


@applied_rule
async def overtaken_pushes_are_honest(subject: Subject) -> None:
    """Notified of newer content, a push ends done, and is, or failed and can be repeated.

    A push that was fenced out has changed nothing.
    """
    push, before = subject.begin(Aim(subject.changed), superseded=True), subject.observe()
    try:
        outcome = await subject.push(subject.changed, push=push)
    except FencedError:
        hold(subject.observe() == before, "an overtaken push that was fenced out changes nothing")
        outcome = Outcome(Result.FAILED)
    if outcome.result is Result.DONE:
        hold((await subject.diff(subject.changed)).empty, "an overtaken push that ends done is done")
    else:
        hold(outcome.result is Result.FAILED, f"an overtaken push that stops early has failed, not {outcome}")
    await subject.apply(subject.changed)


@rule
async def messages_are_one_line(subject: Subject) -> None:
    """Of progress and of outcomes; a time to retry comes with what did not end done."""
    for asset in (subject.asset, subject.changed):
        push = subject.begin(Aim(asset))
        outcome: Outcome = await subject.push(asset, push=push)
        for message in (outcome.message, *push.messages):
            hold(len(message.splitlines()) <= 1, f"a message is one line, unlike {message!r}")
        hold(all(push.messages), "progress messages are not empty")
        done = outcome.result is Result.DONE
        hold(not done or outcome.retry_at is None, "what ended done is not retried")


@applied_rule
async def unknown_goals_stall(subject: Subject) -> None:
    """A goal that the traits do not name raises `StalledError` and touches nothing."""
    with subject.unchanged("a goal that is not known touches nothing"):
        for goal in set(Goal) - {Goal.PRESENT, *subject.goals}:
            await stalls(subject.diff(subject.asset, goal), f"diff for the goal {goal}")
            await stalls(subject.push(subject.asset, goal), f"push for the goal {goal}")


@rule
async def known_goals_are_reached_and_taken_back(subject: Subject) -> None:
    """Each goal that the traits name is reached from PRESENT, again from itself, and left again."""
    for goal in subject.goals:
        await subject.apply(subject.asset)
        hold(not (await subject.diff(subject.asset, goal)).empty, f"{goal} differs from present")
        await subject.apply(subject.asset, goal)
        await subject.apply(subject.asset, goal)
        hold(not (await subject.diff(subject.asset)).empty, f"present differs from {goal}")
    await subject.apply(subject.asset)


@applied_rule
async def goals_follow_each_other(subject: Subject) -> None:
    """A turndown passes through the goals in order, each from the one before."""
    for goal in subject.goals:
        await subject.apply(subject.asset, goal)
