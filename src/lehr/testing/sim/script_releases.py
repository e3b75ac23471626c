"""Commands of scripts that release assets, as a Strategist does."""

from __future__ import annotations

from lehr.control.messages import CommandRollout, ReleaseToIntent
from lehr.model.evidence import RolloutCommand
from lehr.model.release import ReleaseKind
from lehr.testing.sim.script_commands import Command, Output
from lehr.testing.sim.script_harness import ScriptHarness


async def _release(
    harness: ScriptHarness, id: str, at: str, kind: ReleaseKind = ReleaseKind.FORWARD
) -> Output:
    """Let an asset have the content of an incarnation, and no newer one."""
    release = harness.strategist.release(id, harness.sequence(at), kind)
    return _answer(await harness.strategist.write((release,)))


async def _withdraw(harness: ScriptHarness, id: str) -> Output:
    """Take the newest release of an asset back."""
    withdrawn = tuple(item.id for item in harness.witness.releases.history(id)[-1:])
    return _answer(await harness.strategist.write(withdrawn=withdrawn))


async def _let_follow(harness: ScriptHarness, id: str) -> Output:
    """Let an asset follow intent again, without releases."""
    release = harness.strategist.release(id, None, ReleaseKind.PERSON)
    return _answer(await harness.strategist.write((release,)))


def _answer(refused: object) -> Output:
    return None if refused is None else [f"refused: {getattr(refused, 'message', refused)}"]


async def _tell(
    harness: ScriptHarness, action: str, policy: str, reason: str = "as the script asks", by: str = "ana"
) -> Output:
    """Give a command about the rollout of a policy."""
    return await harness.command(
        CommandRollout(action=RolloutCommand(action), policy=policy, reason=reason), by
    )


async def _follow_intent(
    harness: ScriptHarness, selector: str, reason: str = "as the script asks", by: str = "ana"
) -> Output:
    """Let assets follow intent again, as `lehr rollout release` does."""
    return await harness.command(ReleaseToIntent(selector=selector, reason=reason), by)


COMMANDS = (
    Command("release-asset ASSET --at INCARNATION [--kind KIND]", _release),
    Command("withdraw-release ASSET", _withdraw),
    Command("let-follow ASSET", _let_follow),
    Command("rollout-release SELECTOR [--reason TEXT] [--by TEXT]", _follow_intent),
    Command(
        "rollout pause|resume|promote|abort|rollback|restart|retry ASSET [--reason TEXT] [--by TEXT]", _tell
    ),
)
