"""A control plane in this process, from its start to its end, and what people see of it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.cli import words
from lehr.cli.output import print_lines
from lehr.cli.stored import inert_in, installation, named_store, open_store_of
from lehr.cli.told_all import refused, tell_overview
from lehr.control.heartbeat import beating
from lehr.control.lock import exclusive
from lehr.control.plane import ControlPlane, NotPublishableError, Parts, partition_of
from lehr.model.attempt import Attempt, Publication
from lehr.query.overview import survey
from lehr.query.reading import Reading
from lehr.wiring import Deployment, interrupt_sources, parts

if TYPE_CHECKING:
    from lehr.http.server import Address

_INTERRUPTED = 130
_LOOK_SECONDS = 0.1


async def run_on(
    deployment: Deployment,
    listen: Address | None = None,
    secret: str | None = None,
    names: tuple[str, ...] = (),
) -> int:
    """Run until a signal comes. Returns the exit code.

    Args:
        listen: where to answer over HTTP what can be read; None for nowhere.
        secret: of hooks; None to take none.
        names: that requests may come under, as `lehr.http.server.serving` has them.

    Raises:
        LehrError: it cannot start, or the store is broken.
    """
    async with _plane(deployment) as (plane, _parts):
        ended = ending_by_signal()
        await plane.start()
        click.echo(f"lehr keeps {plane.partition} as intended; state in {deployment.state}", err=True)
        serving = asyncio.create_task(plane.serve())
        telling = asyncio.create_task(_tell_changes(plane))
        ending = asyncio.create_task(ended.wait())
        try:
            async with _answering(plane, deployment, listen, secret, names):
                await asyncio.wait((serving, ending, telling), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
        finally:  # or turns would go on over a store that is closed
            for task in (telling, ending):
                task.cancel()
            await plane.stop()
            serving.cancel()
            await asyncio.gather(serving, telling, ending, return_exceptions=True)
    return ended.code


async def run_once(deployment: Deployment, timeout: float | None) -> int:
    """Run until production is as intended (0), or nothing more happens by itself (1).

    Args:
        timeout: seconds after which to give up (1); None for never.

    Raises:
        LehrError: it cannot start, or the store is broken.
    """
    began = SystemClock().monotonic()
    async with _plane(deployment) as (plane, made_of):
        ended = ending_by_signal()
        attempt = await plane.start()
        converging = asyncio.create_task(plane.converge())
        ending = asyncio.create_task(ended.wait())
        with _progress(plane):
            await asyncio.wait((converging, ending), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        converged = converging.done() and converging.result()
        for task in (converging, ending):
            task.cancel()
        await plane.stop()
        await asyncio.gather(converging, ending, return_exceptions=True)
        if ended.is_set():
            return ended.code or 1
        published = attempt.publication in (Publication.PUBLISHED, Publication.UNCHANGED)
        if converged and published:
            seconds = SystemClock().monotonic() - began
            assets = words.counted(plane.enforcer.assets, "asset")
            click.echo(
                f"{_in_force(attempt)}: production is as intended, {assets}, {seconds:.1f} s", err=True
            )
            return 0
        if not converging.done():
            click.echo(f"gave up after {words.span(timeout or 0.0)}", err=True)
        _tell_what_blocks(made_of, plane)
    return 1


@contextlib.asynccontextmanager
async def _answering(
    plane: ControlPlane,
    deployment: Deployment,
    listen: Address | None,
    secret: str | None,
    names: tuple[str, ...],
) -> AsyncIterator[None]:
    """Answers over HTTP meanwhile, if that is wanted. That it cannot is no reason not to run."""
    if listen is None:
        yield
        return
    from lehr.cli.serve import warn_of
    from lehr.http.hooks import Hook
    from lehr.http.server import serving

    clock = SystemClock()
    warn_of(listen)
    hook = None if secret is None else Hook(secret, plane.refresh, clock)
    opening, known = open_store_of(deployment.state), installation(deployment.state)
    async with contextlib.AsyncExitStack() as entered:
        try:
            server = await entered.enter_async_context(
                serving(listen, opening, known, clock, run_state=plane.state, hook=hook, names=names)
            )
        except LehrError as error:
            click.echo(f"warning: nothing is answered over HTTP: {error}", err=True)
            yield
            return
        heard = plane.heard

        def told(attempt: Attempt) -> None:
            heard(attempt)
            server.told()

        plane.heard = told
        click.echo(f"answering at {server.url}", err=True)
        yield


# --- start and end ---------------------------------------------------------------


@contextlib.asynccontextmanager
async def _plane(deployment: Deployment) -> AsyncIterator[tuple[ControlPlane, Parts]]:
    """A control plane that may be started; holds the state folder."""
    async with contextlib.AsyncExitStack() as held:
        held.enter_context(exclusive(deployment.state))
        await held.enter_async_context(beating(deployment.state, SystemClock()))
        _hide_from_git(deployment)
        made_of = parts(deployment, named_store())
        try:
            partition = await partition_of(made_of)
            yield ControlPlane(made_of, partition, _Teller()), made_of
        except NotPublishableError as error:
            from lehr.cli.diagnostics import render

            click.echo(render(error.diagnostics, colour=sys.stderr.isatty()), err=True)
            raise
        finally:
            interrupt_sources()
            await made_of.generation.close()
            made_of.store.close()


def _hide_from_git(deployment: Deployment) -> None:
    """The state is nothing to commit, wherever it lies."""
    ignore = deployment.state / ".gitignore"
    try:
        if not ignore.exists() or not ignore.stat().st_size:  # a full disk leaves it empty
            ignore.write_text("*\n")
    except OSError as error:
        raise LehrError(
            f"{ignore} cannot be written", why=error.strerror or str(error), fix="see to its disk"
        ) from error


class Ending(asyncio.Event):
    """Set by the first signal that asks for the end. A second one ends the process at once.

    Attributes:
        code: exit code.
    """

    code = 0


def ending_by_signal(told: str = "ending; production goes on as it is") -> Ending:
    """Set when a signal asks for the end; `told` is said then. Takes signals from now on."""
    ended = Ending()
    loop = asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        ended.code = _INTERRUPTED if number is signal.SIGINT else 0
        ended.set()
        loop.remove_signal_handler(number)
        click.echo(told, err=True)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end, number)
    return ended


# --- what people see ----------------------------------------------------------------


class _Teller:
    """Tells what comes of passes over the source, once for each that differs from the one before."""

    def __init__(self) -> None:
        self._last: tuple[object, ...] = ()

    def __call__(self, attempt: Attempt) -> None:
        told = (attempt.publication, attempt.sources, attempt.diagnostics)
        if told == self._last:
            return
        before, self._last = self._last[:1], told
        if attempt.publication is Publication.PUBLISHED:
            changed = words.counted(len(attempt.changed), "asset")
            click.echo(f"{_in_force(attempt)} is published: {changed} changed", err=True)
        if attempt.publication in (Publication.REFUSED, Publication.UNREADABLE):
            for line in refused(attempt, attempt.at):
                click.echo(line, err=True)
        elif before == (Publication.UNREADABLE,) and attempt.publication is Publication.UNCHANGED:
            click.echo(f"the source can be read again; {_in_force(attempt)} stays in force", err=True)
        elif attempt.diagnostics:
            from lehr.cli.diagnostics import render

            click.echo(render(attempt.diagnostics), err=True)


def _in_force(attempt: Attempt) -> str:
    return f"{attempt.partition}@{attempt.sequence}"


async def _tell_changes(plane: ControlPlane) -> None:
    """Tell, whenever nothing goes on any more, how things stand, if they stand otherwise than before."""
    before: frozenset[str] | None = None
    while True:
        if plane.enforcer.at_rest and plane.enforcer.unsettled != before:
            before = plane.enforcer.unsettled
            total = words.counted(plane.enforcer.assets, "asset")
            if not plane.enforcer.assets:
                click.echo("there is nothing to be done: no asset is in force", err=True)
            elif before:
                named = ", ".join(sorted(before)[:3]) + (", ..." if len(before) > 3 else "")
                click.echo(f"of {total}, {len(before)} not settled: {named}; see `lehr why --all`", err=True)
            else:
                click.echo(f"production is as intended: {total}", err=True)
        await plane.enforcer.changed()


@contextlib.contextmanager
def _progress(plane: ControlPlane) -> Iterator[None]:
    """A bar of the assets that are settled, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("assets settled", total=plane.enforcer.assets)

        async def follow() -> None:
            while True:
                total, left = plane.enforcer.assets, len(plane.enforcer.unsettled)
                pushing = ", ".join(operation.asset for operation, _said in plane.enforcer.pushes()[:3])
                said = f"pushing {pushing}" if pushing else "assets settled"
                progress.update(bar, total=total, completed=total - left, description=said)
                await SystemClock().sleep(_LOOK_SECONDS)

        following = asyncio.create_task(follow())
        try:
            yield
        finally:
            following.cancel()


def _tell_what_blocks(made_of: Parts, plane: ControlPlane) -> None:
    reading = Reading(
        made_of.store, plane.partition, SystemClock().now(), inert_in(made_of.store, plane.partition)
    )
    overview = replace(survey(reading), attempt=None)  # what came of it was told at once, with excerpts
    print_lines(tell_overview(overview, plane.partition, reading.now, plane.state()))
