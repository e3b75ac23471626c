"""`lehr wait`: waits for the newest commit and the status of assets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import click

from lehr.base.errors import LehrError
from lehr.cli import formatting
from lehr.cli.active_run import ActiveRun, active_run, seen
from lehr.cli.command import command
from lehr.cli.complete import complete_goal, complete_selector
from lehr.cli.named_server import server_option
from lehr.cli.stored import found_state, named_partition, open_reading, partition_option, state_option
from lehr.model.attempt import Attempt
from lehr.query.partition_view import Reading
from lehr.query.wait_conditions import MET, Unmet, missing_run, not_at, unconverged, unpublished

_POLL_SECONDS = 0.2
_ASK_SECONDS = 1.0
_LEAST_LOOK_SECONDS = 10.0
_START_SECONDS = 5.0
"""Seconds that `lehr run &` may take to create its state and lock it."""

_MOST = 5

Goal = Callable[["Reading"], "Unmet"]
"""The remaining obstacles of the awaited condition."""


@command()
@click.argument("selector", default="all", shell_complete=complete_selector)
@click.option(
    "--for",
    "goal",
    default="converged",
    show_default=True,
    metavar="WHAT",
    shell_complete=complete_goal,
    help="Condition: converged, incarnation=N (published), or status=STATUS.",
)
@click.option(
    "--timeout",
    callback=formatting.duration,
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Give up after this time, with exit code 1.",
)
@click.option(
    "--allow-pinned", is_flag=True, help="Count pinned assets as converged once they match their pin."
)
@server_option
@state_option
@partition_option
def wait(selector: str, goal: str, timeout: float, allow_pinned: bool) -> None:
    """Wait until the newest commit is published and all assets of SELECTOR meet the --for condition.

    Examples:
        lehr wait --timeout 2m                          the newest commit, all assets
        lehr wait web/process --for converged
        lehr wait 'web/*' --for status=Waiting --timeout 10s
        lehr wait --for incarnation=7
        lehr wait --timeout 0s                          check without waiting

    First, the active `lehr run` checks the source, so that a commit made a moment ago counts. With
    --server, this waits for its next regular check.

    \b
    Exit codes:
      0  the newest commit is published, and the --for condition is met
      1  not within --timeout; or immediately if waiting would not help: the newest commit was refused, no
         `lehr run` is active (one that was just started gets 5s), or only pinned assets are left
         (--for converged without --allow-pinned)
      2  invalid usage

    --for incarnation=N also exits with 0 if N was published earlier, even if later commits were refused.
    """  # noqa: D301  (click does not wrap what follows \b)
    import asyncio

    missing = _missing(selector, goal, allow_pinned=allow_pinned)
    left = asyncio.run(_until_met(missing, timeout, early=goal.startswith("incarnation")))
    if left.what:
        span, what = formatting.span(timeout), formatting.first_of(left.what, _MOST)
        raise LehrError(
            f"waiting for {goal} does not help" if left.final else f"not {goal} after {span}",
            code="CLI160",
            why=what,
            fix=left.fix or "see `lehr why --all`",
        )


async def _until_met(missing: Goal, timeout: float, *, early: bool) -> Unmet:
    """The obstacles that remain in the end.

    Args:
        early: once the condition is met, it needs no `lehr run`, and stays met.
    """
    from lehr.base.clock import SystemClock

    clock = SystemClock()
    deadline = clock.monotonic() + timeout
    may_start_until = min(deadline, clock.monotonic() + _START_SECONDS)
    while found_state() is None and clock.monotonic() < may_start_until:
        await clock.sleep(_POLL_SECONDS)
    with contextlib.ExitStack() as opened:
        run = opened.enter_context(contextlib.closing(active_run()))
        waiting = _Wait(opened, run, missing, timeout, may_start_until, early=early)
        while True:
            left = waiting.left(clock.monotonic(), clock.now())
            rest = deadline - clock.monotonic()
            if not left.what or left.final or rest <= 0:
                return left
            await clock.sleep(min(_POLL_SECONDS, rest))


class _Wait:
    """One wait, checked repeatedly.

    Args:
        early: as in `_until_met`.
    """

    def __init__(
        self,
        opened: contextlib.ExitStack,
        run: ActiveRun,
        missing: Goal,
        timeout: float,
        may_start_until: float,
        *,
        early: bool,
    ) -> None:
        self._opened = opened
        self._run = run
        self._missing = missing
        self._look_seconds = max(timeout, _LEAST_LOOK_SECONDS)
        self._may_start_until = may_start_until
        self._early = early
        self._reading: Reading | None = None
        self._attempt: Attempt | None = None
        self._caught_up = False
        self._active_until = 0.0
        self._ask_at = 0.0

    def left(self, monotonic: float, now: float) -> Unmet:
        """The obstacles that remain now."""
        reading = self._open(now)
        if self._early and reading is not None and self._missing(reading) == MET:
            return MET
        left = self._without_run(monotonic) or self._unlooked(monotonic)
        if left is not None:
            return left
        assert self._attempt is not None
        reading = self._open(now, published=self._attempt.sequence > 0)
        newest = None if reading is None else reading.newest()
        attempt = self._attempt if reading is None else self._newest_attempt(reading)
        left = unpublished(attempt, newest)
        return left if left.what or reading is None else self._missing(reading)

    def _without_run(self, monotonic: float) -> Unmet | None:
        """Why there is no active `lehr run`; None if there is one."""
        from msgspec import structs

        if monotonic < self._active_until:
            return None
        run = self._run.state()
        left = missing_run(run, named_partition(), self._run.place, seen(run, run.now))
        if left != MET:
            starting = not run.active and monotonic < self._may_start_until
            return structs.replace(left, final=left.final and not starting)
        self._active_until = monotonic + _ASK_SECONDS
        return None

    def _unlooked(self, monotonic: float) -> Unmet | None:
        """The obstacle until the source was checked after the wait began; None afterwards."""
        if self._attempt is not None:
            return None
        if monotonic >= self._ask_at:
            self._ask_at = monotonic + _ASK_SECONDS
            try:
                self._attempt = self._run.look(self._look_seconds)
            except LehrError as error:
                return Unmet((str(error),))
        return None if self._attempt is not None else Unmet(("`lehr run` has not checked the source yet",))

    def _newest_attempt(self, reading: Reading) -> Attempt:
        """Reads of the store may lag behind the result of the first check."""
        assert self._attempt is not None
        stored = reading.records.attempt(reading.partition)
        if stored is None:
            return self._attempt
        same = _result(stored) == _result(self._attempt)
        self._caught_up = self._caught_up or same or stored.at > self._attempt.at
        return stored if self._caught_up else self._attempt

    def _open(self, now: float, *, published: bool = False) -> Reading | None:
        """The current data; None while it cannot be read, if nothing was `published` yet."""
        if self._reading is None:
            with contextlib.suppress(*(() if published else (LehrError,))):
                self._reading = self._opened.enter_context(open_reading())
        if self._reading is not None:
            self._reading.now = now
        return self._reading


def _result(attempt: Attempt) -> tuple[object, ...]:
    return attempt.publication, attempt.sources, attempt.sequence


def _missing(selector: str, goal: str, *, allow_pinned: bool) -> Goal:
    from lehr.model.decision import Status
    from lehr.model.selector import parse_selector
    from lehr.query.asset_rows import selected

    name, _, value = goal.partition("=")
    chosen = parse_selector(selector)
    if goal == "converged":
        return lambda reading: unconverged(reading, selected(reading, chosen), allow_pinned=allow_pinned)
    if name == "incarnation" and value.isdecimal():
        return lambda reading: _not_published(reading, int(value))
    if name == "status":
        status = next((item for item in Status if item.lower() == value.lower()), None)
        if status is not None:
            return lambda reading: Unmet(
                tuple(f"{row.id}: {row.status}" for row in not_at(selected(reading, chosen), status))
            )
    known = ", ".join(Status)
    raise click.UsageError(f"--for must be converged, incarnation=N or status=S; S is one of {known}.")


def _not_published(reading: Reading, sequence: int) -> Unmet:
    newest = reading.newest()
    if newest is not None and newest.sequence >= sequence:
        return MET
    return Unmet((f"{newest.name} is the newest" if newest is not None else "nothing is published yet",))
