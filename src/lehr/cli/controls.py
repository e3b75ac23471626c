"""Setting and lifting controls: pauses, freezes, pins, overrides, approvals, restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lehr.cli.command import command
from lehr.cli.complete import (
    complete_asset,
    complete_control,
    complete_incarnation,
    complete_overridable,
    complete_selector,
)
from lehr.cli.formatting import duration
from lehr.cli.run_requests import send_request
from lehr.cli.stored import open_reading, partition_option, state_option
from lehr.control.messages import Freeze, Lift, Override, Pause, Pin, Restart

Function = TypeVar("Function", bound=Callable[..., Any])

selector_argument = click.argument("selector", shell_complete=complete_selector)


def control_options(function: Function) -> Function:
    """The selector and the options of all commands that set a control."""
    function = state_option(function)
    function = click.option(
        "--for",
        "seconds",
        callback=duration,
        metavar="TIME",
        help="How long it is active. Defaults to until lifted.",
    )(function)
    function = click.option(
        "--reason", required=True, help="Reason, shown to others and recorded in the audit trail."
    )(function)
    return selector_argument(function)


def lift_options(function: Function) -> Function:
    """The selector and the options of all commands that lift a control."""
    function = state_option(function)
    function = click.option("--reason", default="", help="Reason, recorded in the audit trail.")(function)
    return click.argument("selector", shell_complete=complete_control)(function)


def _lift(kind: str, selector: str, reason: str) -> None:
    print(send_request(Lift(kind=kind, selector=selector, reason=reason)).message)


@command()
@control_options
def pause(selector: str, reason: str, seconds: float | None) -> None:
    """Pause the assets of SELECTOR: production is neither observed nor changed.

    Examples:
        lehr pause web/process --reason "debugging by hand" --for 1h
    """
    print(send_request(Pause(selector=selector, reason=reason, seconds=seconds)).message)


@command()
@lift_options
def resume(selector: str, reason: str) -> None:
    """Lift the pause of SELECTOR. `all` lifts every pause.

    Examples:
        lehr resume web/process
        lehr resume all
    """
    _lift("pause", selector, reason)


@command()
@control_options
def freeze(selector: str, reason: str, seconds: float | None) -> None:
    """Stop pushes of the assets of SELECTOR immediately. Production is still observed.

    Examples:
        lehr freeze all --reason "the shop's busiest day" --for 24h
        lehr freeze label:team=web --reason "migration in progress"
    """
    print(send_request(Freeze(selector=selector, reason=reason, seconds=seconds)).message)


@command()
@lift_options
def unfreeze(selector: str, reason: str) -> None:
    """Lift the freeze of SELECTOR. `all` lifts every freeze.

    Examples:
        lehr unfreeze label:team=web
        lehr unfreeze all
    """
    _lift("freeze", selector, reason)


@command()
@control_options
@click.option(
    "--at",
    "at",
    required=True,
    metavar="INCARNATION",
    shell_complete=complete_incarnation,
    help="Incarnation: 3, hello@3, latest or previous.",
)
@partition_option
def pin(selector: str, reason: str, seconds: float | None, at: str) -> None:
    """Keep the assets of SELECTOR at one incarnation, whatever is published later.

    Examples:
        lehr pin web/process --at 41 --reason "42 loses sessions"
        lehr pin 'web/*' --at previous --reason "42 loses sessions" --for 1d
    """
    _pin(selector, reason, seconds, at)


@command()
@lift_options
def unpin(selector: str, reason: str) -> None:
    """Lift the pin of SELECTOR. `all` lifts every pin.

    Examples:
        lehr unpin web/process
    """
    _lift("pin", selector, reason)


@command()
@control_options
@click.option(
    "--to",
    "at",
    default="previous",
    metavar="INCARNATION",
    shell_complete=complete_incarnation,
    help="Incarnation. Defaults to the one before the newest.",
)
@partition_option
def rollback(selector: str, reason: str, seconds: float | None, at: str) -> None:
    """Roll the assets of SELECTOR back to an earlier incarnation, and keep them there.

    This sets a pin: it needs neither git nor the network, and `lehr unpin` lifts it.

    Examples:
        lehr rollback web/process --reason "it loses sessions"
        lehr rollback all --to 41 --reason "42 is broken"
    """
    _pin(selector, reason, seconds, at)
    import shlex

    click.echo(f"`lehr unpin {shlex.quote(selector)}` lifts the pin", err=True)


def _pin(selector: str, reason: str, seconds: float | None, at: str) -> None:
    with open_reading() as reading:
        sequence = reading.incarnation(at).sequence
    request = Pin(selector=selector, reason=reason, seconds=seconds, incarnation=sequence)
    print(send_request(request).message)


@command()
@control_options
@click.option(
    "--check",
    required=True,
    metavar="ID",
    shell_complete=complete_overridable,
    help="Asset that configures the check.",
)
def override(selector: str, reason: str, seconds: float | None, check: str) -> None:
    """Override a check for pushes of SELECTOR in an emergency. Recorded in the audit trail.

    The asset that configures the check must set `override: true`.

    Examples:
        lehr override web/process --check office-hours --reason "incident 712" --for 30m
    """
    request = Override(selector=selector, reason=reason, seconds=seconds, check=check)
    print(send_request(request).message)


@command()
@click.argument("asset", shell_complete=complete_asset)
@click.option("--reason", required=True, help="Reason, shown to others and recorded in the audit trail.")
@click.option(
    "--for",
    "seconds",
    callback=duration,
    metavar="TIME",
    help="Give up if it was not restarted by then. Defaults to never.",
)
@state_option
def restart(asset: str, reason: str, seconds: float | None) -> None:
    """Restart what runs of ASSET, although nothing differs: replicas one by one, each until it is healthy.

    This is a push like any other: calendars, limits, freezes and dependencies may delay it. The request is
    recorded with your name, and is lifted when everything was restarted; before that,
    `lehr revoke restart ASSET` withdraws it.

    Examples:
        lehr restart web/process --reason "it leaks memory"
        lehr restart web/process --reason "new resolv.conf" && lehr wait web/process
    """
    print(send_request(Restart(selector=asset, reason=reason, seconds=seconds)).message)


@command()
@click.argument("kind", type=click.Choice(["approval", "override", "restart"]))
@lift_options
def revoke(kind: str, selector: str, reason: str) -> None:
    """Revoke the approval, override or restart of SELECTOR. `all` revokes every one.

    Pushes that have already started continue.

    Examples:
        lehr revoke override web/process
        lehr revoke approval db/schema --reason "the column is read after all"
    """
    _lift(kind, selector, reason)
