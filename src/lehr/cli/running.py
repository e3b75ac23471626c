"""A control plane in this process, from its start to its end, and what people see of it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import LehrError
from lehr.cli import words
from lehr.cli.ending import EndedError, Ending, tell
from lehr.cli.new_state import prepare
from lehr.cli.output import print_lines
from lehr.cli.stored import inert_in, installation, named_store, open_store_of
from lehr.cli.told_all import refused, tell_overview
from lehr.control.heartbeat import beating
from lehr.control.lock import exclusive
from lehr.control.plane import GRACE_SECONDS, ControlPlane, NotPublishableError, Parts, partition_of
from lehr.control.state_folder import write_record
from lehr.enforce.failing import brief
from lehr.model.attempt import Attempt, Publication
from lehr.query.overview import survey
from lehr.query.partition_view import Reading
from lehr.sdk.source import REMARK
from lehr.wiring import Deployment, interrupt_sources, parts

if TYPE_CHECKING:
    from lehr.http.server import Address

_LOOK_SECONDS = 0.1
_TELL_SECONDS = 10.0
_CLOSE_SECONDS = 5.0


async def run_on(
    ended: Ending,
    deployment: Deployment,
    listen: Address | None = None,
    secret: Callable[[], str] | None = None,
    names: tuple[str, ...] = (),
    hung_up: HungUp | None = None,
) -> int:
    """Run until the end is asked for. Returns the exit code.

    Args:
        listen: where to answer reads over HTTP; None for nowhere.
        secret: reads that of hooks; None to take none.
        names: that requests may come under, as `lehr.http.server.serving` has them.
        hung_up: is what SIGHUP sets, to have the source looked at.

    Raises:
        LehrError: it cannot start, or the store is broken.
    """
    with contextlib.suppress(EndedError):
        async with _plane(deployment, ended) as (plane, _parts):
            await ended.unless(plane.start())
            tell(f"lehr keeps {plane.partition} as intended; state in {deployment.state}")
            looking = None if hung_up is None else asyncio.create_task(_look_when(hung_up, plane))
            telling = asyncio.create_task(_tell_changes(plane))
            try:
                async with _answering(plane, deployment, listen, secret, names):
                    await ended.unless(plane.serve())
            finally:  # or turns would go on over a store that is closed
                telling.cancel()
                if looking is not None:
                    looking.cancel()
                await _stop(plane)
    return ended.code


async def run_once(ended: Ending, deployment: Deployment, timeout: float | None) -> int:
    """Run until production is as intended (0), or nothing more happens automatically (1).

    Args:
        timeout: seconds after which to give up (1); None for never.

    Raises:
        LehrError: it cannot start, or the store is broken.
    """
    began = SystemClock().monotonic()
    if timeout is not None:
        ended.after(timeout)
    started = False
    try:
        async with _plane(deployment, ended) as (plane, made_of):
            attempt = await ended.unless(plane.start())
            started = True
            converged = await _converged(plane, ended)
            await _stop(plane)
            if ended.is_set() and not ended.timed_out:
                return ended.code or 1
            if converged and attempt.publication in (Publication.PUBLISHED, Publication.UNCHANGED):
                seconds = SystemClock().monotonic() - began
                assets = words.counted(plane.enforcer.assets, "asset")
                tell(f"{_in_force(attempt)}: production is as intended, {assets}, {seconds:.1f} s")
                return 0
            if ended.timed_out:
                tell(f"gave up after {words.span(timeout or 0.0)}")
            _tell_what_blocks(made_of, plane)
    except EndedError:
        if ended.timed_out and not started:
            tell(f"gave up after {words.span(timeout or 0.0)}: the source or the store did not answer")
    return ended.code or 1


async def _converged(plane: ControlPlane, ended: Ending) -> bool:
    """Whether production is as intended; False if it is not when the end is asked for."""
    try:
        with _progress(plane):
            return await ended.unless(plane.converge())
    except EndedError:
        return False
    except BaseException:
        await plane.stop(grace=0.0)
        raise


async def _stop(plane: ControlPlane) -> None:
    """Stop, and report what is waited for."""
    telling = asyncio.create_task(_tell_waiting(plane))
    try:
        await plane.stop()
    finally:
        telling.cancel()


async def _tell_waiting(plane: ControlPlane) -> None:
    clock = SystemClock()
    until = clock.monotonic() + GRACE_SECONDS
    while pushes := [str(operation.asset) for operation, _said in plane.enforcer.pushes()]:
        left = max(0.0, until - clock.monotonic())
        named = ", ".join(pushes[:3]) + (", ..." if len(pushes) > 3 else "")
        tell(f"waiting up to {words.span(left)} for {words.counted(len(pushes), 'push', 'pushes')}: {named}")
        await clock.sleep(_TELL_SECONDS)


class HungUp:
    """SIGHUP: look at the source now. Files of keys are read at each use anyway."""

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None

    def __call__(self) -> None:
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Wait until it comes, again."""
        self._event = self._event or asyncio.Event()
        await self._event.wait()
        self._event.clear()


async def _look_when(hung_up: HungUp, plane: ControlPlane) -> None:
    while True:
        await hung_up.wait()
        tell("looking at the source now, as SIGHUP asks")
        try:
            await plane.refresh()
        except LehrError as error:
            tell(f"the source could not be looked at: {error}")
        except Exception as error:  # the next signal counts all the same
            tell(f"the source could not be looked at: {brief(error)}")


@contextlib.asynccontextmanager
async def _answering(
    plane: ControlPlane,
    deployment: Deployment,
    listen: Address | None,
    secret: Callable[[], str] | None,
    names: tuple[str, ...],
) -> AsyncIterator[None]:
    """Also answers over HTTP, if requested. A failure to do so does not stop the run."""
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
            tell(f"warning: nothing is answered over HTTP: {error}")
            yield
            return
        plane.listeners.append(lambda attempt: server.told())
        tell(f"answering at {server.url}")
        yield


# --- start and end ---------------------------------------------------------------


async def _prepared(deployment: Deployment, ended: Ending) -> None:
    threads = Threads("state", 1)
    try:
        await ended.unless(threads.run(prepare, deployment))
    except EndedError:
        interrupt_sources()
        raise
    finally:
        threads.close()


@contextlib.asynccontextmanager
async def _plane(deployment: Deployment, ended: Ending) -> AsyncIterator[tuple[ControlPlane, Parts]]:
    """A control plane that may be started; holds the state folder."""
    await _prepared(deployment, ended)
    async with contextlib.AsyncExitStack() as held:
        held.enter_context(exclusive(deployment.state))
        await held.enter_async_context(beating(deployment.state, SystemClock()))
        made_of = parts(deployment, named_store())
        try:
            partition = await ended.unless(partition_of(made_of))
            write_record(deployment.state, deployment.base, str(partition))
            plane = ControlPlane(made_of, partition)
            plane.listeners.append(_Teller())
            yield plane, made_of
        except NotPublishableError as error:
            from lehr.cli.diagnostics import render

            tell(render(error.diagnostics, colour=sys.stderr.isatty()))
            raise
        finally:
            interrupt_sources()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await made_of.generation.close()
            made_of.store.close()


# --- what people see ----------------------------------------------------------------


class _Teller:
    """Reports results of passes over the source, once for each that differs from the one before."""

    def __init__(self) -> None:
        self._last: tuple[object, ...] = ()
        self._remarks: tuple[Diagnostic, ...] = ()

    def __call__(self, attempt: Attempt) -> None:
        remarks = tuple(item for item in attempt.diagnostics if item.code == REMARK)
        if remarks == self._remarks:  # which are reported once, and not with every commit
            rest = tuple(item for item in attempt.diagnostics if item not in remarks)
            attempt = replace(attempt, diagnostics=rest)
        self._remarks = remarks
        told = (attempt.publication, attempt.sources, attempt.diagnostics)
        if told == self._last:
            return
        before, self._last = self._last[:1], told
        if attempt.publication is Publication.PUBLISHED:
            changed = words.counted(len(attempt.changed), "asset")
            tell(f"{_in_force(attempt)} is published: {changed} changed")
        if attempt.publication in (Publication.REFUSED, Publication.UNREADABLE):
            for line in refused(attempt, attempt.at):
                tell(line)
        elif before == (Publication.UNREADABLE,) and attempt.publication is Publication.UNCHANGED:
            tell(f"the source can be read again; {_in_force(attempt)} stays in force")
        elif attempt.diagnostics:
            from lehr.cli.diagnostics import render

            tell(render(attempt.diagnostics))


def _in_force(attempt: Attempt) -> str:
    return f"{attempt.partition}@{attempt.sequence}"


async def _tell_changes(plane: ControlPlane) -> None:
    """Report the state of everything whenever all is quiet, if it differs from the last report."""
    before: frozenset[str] | None = None
    while True:
        if plane.enforcer.at_rest and plane.enforcer.unsettled != before:
            before = plane.enforcer.unsettled
            total = words.counted(plane.enforcer.assets, "asset")
            if not plane.enforcer.assets:
                tell("there is nothing to be done: no asset is in force")
            elif before:
                named = ", ".join(sorted(before)[:3]) + (", ..." if len(before) > 3 else "")
                tell(f"of {total}, {len(before)} not settled: {named}; see `lehr why --all`")
            else:
                tell(f"production is as intended: {total}")
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
    if plane.enforcer.trouble:
        tell(f"the newest incarnation is not enforced: {plane.enforcer.trouble}")
    reading = Reading(
        made_of.store, plane.partition, SystemClock().now(), inert_in(made_of.store, plane.partition)
    )
    overview = replace(survey(reading), attempt=None)  # the result was reported, with excerpts
    print_lines(tell_overview(overview, plane.partition, reading.now, plane.state()))
