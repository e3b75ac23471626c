"""Commands about rollouts, for the active `lehr run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lehr.cli.command import command
from lehr.cli.complete import complete_rollout_policy, complete_selector
from lehr.cli.run_requests import send_request
from lehr.cli.stored import state_option
from lehr.control.messages import CommandRollout, ReleaseToIntent
from lehr.model.evidence import RolloutCommand

Function = TypeVar("Function", bound=Callable[..., Any])

policy_argument = click.argument("policy", required=False, shell_complete=complete_rollout_policy)


def _options(function: Function) -> Function:
    function = click.option(
        "--reason", required=True, help="Reason, shown to others and recorded in the audit trail."
    )(state_option(function))
    return policy_argument(function)


def _send(action: RolloutCommand, policy: str | None, reason: str) -> None:
    request = CommandRollout(action=action, policy=policy or "", reason=reason)
    print(send_request(request).message)


@command()
@_options
def pause(policy: str | None, reason: str) -> None:
    """Pause the rollout of POLICY: the content is released to no further unit until it is resumed.

    Units that have the content keep it, and are still watched.

    Examples:
        lehr rollout pause web-waves --reason "the database is being moved"
    """
    _send(RolloutCommand.PAUSE, policy, reason)


@command()
@policy_argument
@click.option("--reason", default="", help="Reason, recorded in the audit trail.")
@state_option
def resume(policy: str | None, reason: str) -> None:
    """Lift the pause of the rollout of POLICY.

    Examples:
        lehr rollout resume web-waves
    """
    _send(RolloutCommand.RESUME, policy, reason)


@command()
@_options
def promote(policy: str | None, reason: str) -> None:
    """Declare the units good that have the content of POLICY's rollout: the next wave begins at once.

    This is valid for the units that have the content now. Later ones are watched as usual.

    Examples:
        lehr rollout promote web-waves --reason "load test passed"
    """
    _send(RolloutCommand.PROMOTE, policy, reason)


@command()
@_options
def abort(policy: str | None, reason: str) -> None:
    """End the rollout of POLICY where it is: units that have the content keep it, and no other gets it.

    No rollout begins with the same content until `lehr rollout retry`. Other content begins one as usual.

    Examples:
        lehr rollout abort web-waves --reason "superseded next week"
    """
    _send(RolloutCommand.ABORT, policy, reason)


@command()
@_options
def rollback(policy: str | None, reason: str) -> None:
    """End the rollout of POLICY: units that have its content get the content that they had before, at once.

    No rollout begins with the same content until `lehr rollout retry`. Other content begins one as usual.

    Examples:
        lehr rollout rollback web-waves --reason "sessions are lost"
    """
    _send(RolloutCommand.ROLLBACK, policy, reason)


@command()
@_options
def restart(policy: str | None, reason: str) -> None:
    """End the rollout of POLICY, and begin one to the newest content with the first wave.

    Newer content otherwise waits until the rollout under way has ended.

    Examples:
        lehr rollout restart web-waves --reason "skip 41, it has a known bug"
    """
    _send(RolloutCommand.RESTART, policy, reason)


@command()
@_options
def retry(policy: str | None, reason: str) -> None:
    """Allow content of POLICY that has failed to be tried again, from the first wave.

    Examples:
        lehr rollout retry web-waves --reason "the disk was full, not the release's fault"
    """
    _send(RolloutCommand.RETRY, policy, reason)


@command()
@click.argument("selector", shell_complete=complete_selector)
@click.option("--reason", required=True, help="Reason, shown to others and recorded in the audit trail.")
@state_option
def release(selector: str, reason: str) -> None:
    """Let the assets of SELECTOR follow intent again, after their rollout policy is gone.

    An asset keeps its content when its policy is removed or no longer selects it. With this command the
    newest content is pushed to it, without waves. It is refused while a policy governs one of the assets.
    Policies that come later leave these assets alone.

    Examples:
        lehr rollout release web/process --reason "no longer rolled out in waves"
        lehr rollout release 'web/*' --reason "the policy is gone"
    """
    print(send_request(ReleaseToIntent(selector=selector, reason=reason)).message)
