"""Active controls: pauses, freezes, pins, overrides; and lifting them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lehr.cli.commanding import command
from lehr.cli.stored import complete_asset, open_reading, partition_option, state_option
from lehr.cli.words import duration

Function = TypeVar("Function", bound=Callable[..., Any])

selector_argument = click.argument("selector", shell_complete=complete_asset)


def control_options(function: Function) -> Function:
    """The selector and the options of all commands that set a control."""
    function = state_option(function)
    function = click.option(
        "--for", "seconds", callback=duration, metavar="TIME", help="How long it stands; else until lifted."
    )(function)
    function = click.option("--reason", required=True, help="Why, for whoever finds it later.")(function)
    return selector_argument(function)


def lift_options(function: Function) -> Function:
    """The selector and the options of all commands that take a control back."""
    function = state_option(function)
    function = click.option("--reason", default="", help="Why, kept in the audit trail.")(function)
    return selector_argument(function)


def _lift(state: Path | None, kind: str, selector: str, reason: str) -> None:
    from lehr.control.messages import Lift

    print(command(state, Lift(kind=kind, selector=selector, reason=reason)).message)


@click.command(
    epilog="""
    \b
    Examples:
      lehr pause web/process --reason "looking into it by hand" --for 1h
    """
)
@control_options
def pause(selector: str, reason: str, seconds: float | None, state: Path | None) -> None:
    """Leave the assets of SELECTOR alone: production is neither looked at nor changed."""
    from lehr.control.messages import Pause

    print(command(state, Pause(selector=selector, reason=reason, seconds=seconds)).message)


@click.command(
    epilog="""
    \b
    Examples:
      lehr resume web/process
      lehr resume all
    """
)
@lift_options
def resume(selector: str, reason: str, state: Path | None) -> None:
    """Take the pause of SELECTOR back; `all` takes every pause back."""
    _lift(state, "pause", selector, reason)


@click.command(
    epilog="""
    \b
    Examples:
      lehr freeze all --reason "the shop's busiest day" --for 24h
      lehr freeze label:team=web --reason "a move is under way"
    """
)
@control_options
def freeze(selector: str, reason: str, seconds: float | None, state: Path | None) -> None:
    """Push none of the assets of SELECTOR. Production is looked at as before. Holds at once."""
    from lehr.control.messages import Freeze

    print(command(state, Freeze(selector=selector, reason=reason, seconds=seconds)).message)


@click.command(
    epilog="""
    \b
    Examples:
      lehr unfreeze label:team=web
      lehr unfreeze all
    """
)
@lift_options
def unfreeze(selector: str, reason: str, state: Path | None) -> None:
    """Take the freeze of SELECTOR back; `all` takes every freeze back."""
    _lift(state, "freeze", selector, reason)


@click.command(
    epilog="""
    \b
    Examples:
      lehr pin web/process --at 41 --reason "42 loses sessions"
      lehr pin 'web/*' --at previous --reason "42 loses sessions" --for 1d
    """
)
@control_options
@click.option("--at", "at", required=True, metavar="INCARNATION", help="3, hello@3, latest or previous.")
@partition_option
def pin(
    selector: str, reason: str, seconds: float | None, state: Path | None, at: str, partition: str | None
) -> None:
    """Keep the assets of SELECTOR as one incarnation says, whatever is published."""
    _pin(selector, reason, seconds, state, at, partition)


@click.command(
    epilog="""
    \b
    Examples:
      lehr unpin web/process
    """
)
@lift_options
def unpin(selector: str, reason: str, state: Path | None) -> None:
    """Take the pin of SELECTOR back; `all` takes every pin back."""
    _lift(state, "pin", selector, reason)


@click.command(
    epilog="""
    \b
    Examples:
      lehr rollback web/process --reason "it loses sessions"
      lehr rollback all --to 41 --reason "42 is bad altogether"
    """
)
@control_options
@click.option("--to", "at", default="previous", metavar="INCARNATION", help="Else the one before the newest.")
@partition_option
def rollback(
    selector: str, reason: str, seconds: float | None, state: Path | None, at: str, partition: str | None
) -> None:
    """Bring the assets of SELECTOR back to an earlier incarnation, and keep them there.

    It is a pin: needs neither git nor the network, and ends with `lehr unpin`.
    """
    _pin(selector, reason, seconds, state, at, partition)
    import shlex

    click.echo(f"it stands until `lehr unpin {shlex.quote(selector)}`", err=True)


def _pin(
    selector: str, reason: str, seconds: float | None, state: Path | None, at: str, partition: str | None
) -> None:
    from lehr.control.messages import Pin

    with open_reading(state, partition) as reading:
        sequence = reading.incarnation(at).sequence
    request = Pin(selector=selector, reason=reason, seconds=seconds, incarnation=sequence)
    print(command(state, request).message)


@click.command(
    epilog="""
    \b
    Examples:
      lehr override web/process --check office-hours --reason "incident 712" --for 30m
    """
)
@control_options
@click.option("--check", required=True, metavar="ID", help="Asset that configures the check.")
def override(selector: str, reason: str, seconds: float | None, state: Path | None, check: str) -> None:
    """Let pushes of SELECTOR through a check that may be overridden, in an emergency. It is audited.

    The asset that configures the check has to say `override: true`.
    """
    from lehr.control.messages import Override

    request = Override(selector=selector, reason=reason, seconds=seconds, check=check)
    print(command(state, request).message)


@click.command(
    epilog="""
    \b
    Examples:
      lehr revoke override web/process
      lehr revoke approval db/schema --reason "the column is read after all"
    """
)
@click.argument("kind", type=click.Choice(["approval", "override"]))
@lift_options
def revoke(kind: str, selector: str, reason: str, state: Path | None) -> None:
    """Take the approval or the override of SELECTOR back; `all` takes every one back.

    A push that it has let through already goes on.
    """
    _lift(state, kind, selector, reason)
