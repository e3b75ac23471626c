"""`lehr stop`: ends the active `lehr run`, and on request what it supervises."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Mapping
from pathlib import Path

import click

from lehr import wiring
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.formatting import duration
from lehr.cli.stored import state_folder, state_option
from lehr.control.lock import exclusive, holder

_MOST_NAMED = 5
_LOOK_SECONDS = 0.1


@command()
@click.option("--processes", is_flag=True, help="Also stop all processes that Lehr supervises here.")
@click.option(
    "--timeout",
    callback=duration,
    default="2m",
    show_default=True,
    metavar="TIME",
    help="Exit with 1 if something still runs after this time.",
)
@state_option
def stop(processes: bool, timeout: float) -> None:
    """Stop the active `lehr run` of a state folder, and report what keeps running.

    It is stopped as by SIGTERM: no new push starts, and pushes that run get 30 seconds. Production stays as
    it is, and the next `lehr run` takes it over without restarting anything.

    With --processes, all processes that Lehr supervises from this state folder end as well, each within its
    `stop_timeout_seconds`. The next `lehr run` starts them again.

    Examples:
        lehr stop                       before an upgrade; nothing else stops
        lehr stop --processes           before the machine goes away
    """
    folder, deadline = state_folder(), SystemClock().monotonic() + timeout
    process = _stop_run(folder, timeout)
    print("no `lehr run` is active" if process is None else f"`lehr run` (process {process}) has stopped")
    before = wiring.supervised(folder)
    if not processes:
        for line in remaining(before):
            print(line)
        return
    # With the lock: a `lehr run` that begins now would start again what is being stopped.
    with exclusive(folder):
        _stop_processes(folder, deadline, timeout)
    print(f"stopped {_named(before)}; `lehr run` starts them again" if before else "no process was running")


def _stop_run(folder: Path, timeout: float) -> int | None:
    """Stop the `lehr run` of a state folder; the process that it was, or None if there was none.

    Raises:
        LehrError: it belongs to another user, or did not end in time.
    """
    process = holder(folder)
    if process is None:
        return None
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return process
    try:
        if holder(folder) == process:  # checked after opening: the handle cannot refer to another process
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            if not select.select((handle,), (), (), timeout)[0]:
                raise LehrError(
                    f"`lehr run` (process {process}) did not stop in {formatting.span(timeout)}",
                    code="CLI171",
                    fix="wait longer with --timeout; its log names what it waits for",
                )
    except ProcessLookupError:
        pass
    except PermissionError as error:
        fix = "stop it as that user, or as root"
        raise LehrError(f"process {process} belongs to another user", code="CLI172", fix=fix) from error
    finally:
        os.close(handle)
    return process


def _stop_processes(folder: Path, deadline: float, timeout: float) -> None:
    shutdown = wiring.shutdown(folder)
    while left := shutdown.step():
        if SystemClock().monotonic() >= deadline:
            count = formatting.counted(len(left), "process", "processes")
            raise LehrError(
                f"{count} did not stop in {formatting.span(timeout)}",
                code="CLI173",
                why=f"still running: {', '.join(str(item.pid) for item in left[:_MOST_NAMED])}",
                fix="wait longer with --timeout, or end them by hand",
            )
        select.select((), (), (), _LOOK_SECONDS)


def remaining(processes: Mapping[str, int]) -> list[str]:
    """The processes that keep running after a stop, as lines of output.

    Args:
        processes: number of replicas that run, by asset.
    """
    if not processes:
        return ["no supervised process is running"]
    return [
        f"still running: {_named(processes)}; `lehr run` takes over",
        "`lehr stop --processes` stops them as well",
    ]


def _named(processes: Mapping[str, int]) -> str:
    """`3 processes of 2 assets: hello/web (2), shop/api`."""
    named = [f"{id} ({count})" if count > 1 else id for id, count in processes.items()]
    more = len(named) - _MOST_NAMED
    listed = ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    count = formatting.counted(sum(processes.values()), "process", "processes")
    return f"{count} of {formatting.counted(len(named), 'asset')}: {listed}"
