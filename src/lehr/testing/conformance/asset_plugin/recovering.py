"""The rules of production that puts itself right, for subjects with a `crash`."""

from __future__ import annotations

from lehr.testing.conformance.asset_plugin.subject import Rule, Subject, rule
from lehr.testing.conformance.holding import hold

_MOST_WAIT = 0.5  # seconds between two looks, however long a plugin would have waited


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


RULES: tuple[Rule, ...] = (crashes_cost_no_push,)
