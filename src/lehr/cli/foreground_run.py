"""A control plane in this process, from start to end, and its output."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from msgspec.structs import replace

from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import LehrError
from lehr.cli import formatting
from lehr.cli.logged_activity import logged_activity
from lehr.cli.output import print_lines
from lehr.cli.overview_text import overview_lines, refused
from lehr.cli.progress import drawn
from lehr.cli.run_log import as_json, report
from lehr.cli.shutdown import EndedError, Ending, Hangup
from lehr.cli.stored import named_store
from lehr.control.activity_log import MINUTE, Level
from lehr.control.named_partition import NotPublishableError
from lehr.control.parts import Parts
from lehr.control.plane import GRACE_SECONDS, ControlPlane
from lehr.control.service_manager import ServiceManager, notified
from lehr.control.state_folder import UNUSED
from lehr.enforce.plugin_errors import one_line
from lehr.model.attempt import Attempt, Publication
from lehr.model.selector import Selector
from lehr.query.asset_rows import rows
from lehr.query.cause_reader import read_root_causes
from lehr.query.overview import survey
from lehr.query.partition_view import Reading
from lehr.sdk.generation import Generation
from lehr.sdk.source import REMARK
from lehr.wiring import Deployment, inert_in
from lehr.wiring.program import Answering, answering, control_plane

_LOOK_SECONDS = 0.1
_REPORT_SECONDS = 10.0


async def run_on(
    ended: Ending,
    deployment: Deployment,
    generating: Generation,
    http: Answering | None = None,
    hangup: Hangup | None = None,
) -> int:
    """Run until a shutdown is requested. Returns the exit code.

    Args:
        generating: generates the assets of the workspace; it may be starting.
        http: where and to whom to answer over HTTP; None for nowhere.
        hangup: set by SIGHUP, to check the source.

    Raises:
        LehrError: it cannot start, or the store is broken.
    """
    manager = ServiceManager()
    with contextlib.suppress(EndedError):
        async with (
            _plane(deployment, generating, ended) as (plane, _parts),
            notified(manager, plane, SystemClock()),
        ):
            await ended.unless(plane.start())
            report(f"enforcing partition {plane.partition}; state in {deployment.state}")
            looking = None if hangup is None else asyncio.create_task(_look_when(hangup, plane, manager))
            reporting = asyncio.create_task(_report_changes(plane))
            try:
                async with _answering(plane, deployment, http):
                    await ended.unless(plane.serve())
            finally:  # otherwise turns would continue on a closed store
                manager.stop()
                reporting.cancel()
                if looking is not None:
                    looking.cancel()
                await _stop(plane)
    return ended.code


async def run_once(
    ended: Ending, deployment: Deployment, generating: Generation, timeout: float | None
) -> int:
    """Run until production is as intended (0), or until nothing more happens automatically (1).

    Args:
        generating: as for `run_on`.
        timeout: seconds after which to give up (1); None for never.

    Raises:
        LehrError: it cannot start, or the store is broken.
    """
    began = SystemClock().monotonic()
    if timeout is not None:
        ended.after(timeout)
    waited_for = "the source or the store has not answered yet"
    try:
        async with _plane(deployment, generating, ended) as (plane, made_of):
            try:
                attempt = await ended.unless(plane.start())
            except EndedError:
                waited_for = plane.standby or "the source has not answered yet"
                raise
            waited_for = ""
            converged = await _converged(plane, ended)
            count = await _selected(plane, deployment.only)
            await _stop(plane)
            if ended.is_set() and not ended.timed_out:
                return ended.code or 1
            if converged and attempt.publication in (Publication.PUBLISHED, Publication.UNCHANGED):
                seconds = SystemClock().monotonic() - began
                assets = formatting.counted(count, "asset")
                of = "" if deployment.only is None else f" ({deployment.only})"
                report(f"{_in_force(attempt)}: production is as intended, {assets}{of}, {seconds:.1f} s")
                return 0
            if ended.timed_out:
                report(f"gave up after {formatting.span(timeout or 0.0)}")
            _report_what_blocks(made_of, plane, deployment.only)
    except EndedError:
        if ended.timed_out and waited_for:
            report(f"gave up after {formatting.span(timeout or 0.0)}: {waited_for}")
    return ended.code or 1


async def _selected(plane: ControlPlane, only: Selector | None) -> int:
    """How many assets a run is for.

    Raises:
        LehrError: none.
    """
    if only is None:
        return plane.enforcer.assets
    if ids := await plane.enforcer.select(only):
        return len(ids)
    await plane.stop(grace=0.0)
    raise LehrError(f"no asset is selected by {only}", code="CLI174", fix="see `lehr get assets`")


async def _converged(plane: ControlPlane, ended: Ending) -> bool:
    """Whether production is as intended; False if a shutdown is requested before it is."""
    try:
        with _progress(plane):
            return await ended.unless(plane.converge())
    except EndedError:
        return False
    except BaseException:
        await plane.stop(grace=0.0)
        raise


async def _stop(plane: ControlPlane) -> None:
    """Stop, and report the pushes that are waited for."""
    reporting = asyncio.create_task(_report_waiting(plane))
    try:
        await plane.stop()
    finally:
        reporting.cancel()


async def _report_waiting(plane: ControlPlane) -> None:
    clock = SystemClock()
    until = clock.monotonic() + GRACE_SECONDS
    while pushes := [str(operation.asset) for operation, _said in plane.enforcer.pushes()]:
        left = max(0.0, until - clock.monotonic())
        named = ", ".join(pushes[:3]) + (", ..." if len(pushes) > 3 else "")
        count = formatting.counted(len(pushes), "push", "pushes")
        report(f"waiting up to {formatting.span(left)} for {count}: {named}")
        await clock.sleep(_REPORT_SECONDS)


async def _look_when(hangup: Hangup, plane: ControlPlane, manager: ServiceManager) -> None:
    while True:
        await hangup.wait()
        report("checking the source now (SIGHUP)")
        try:
            with manager.reloading(SystemClock()):
                await plane.refresh()
        except LehrError as error:
            report(f"the source could not be checked: {error}", "source", Level.WARNING)
        except Exception as error:  # the next signal is still handled
            report(f"the source could not be checked: {one_line(error)}", "source", Level.WARNING)


@contextlib.asynccontextmanager
async def _answering(
    plane: ControlPlane, deployment: Deployment, http: Answering | None
) -> AsyncIterator[None]:
    """Also answers over HTTP, if requested. A failure to do so does not stop the run."""
    async with contextlib.AsyncExitStack() as entered:
        if http is not None:
            from lehr.cli.serve import serving_at, warn_of

            warn_of(http)
            given = (deployment.state, named_store(), plane.state, plane)
            try:
                how = http._replace(deployment=deployment)
                server = await entered.enter_async_context(answering(how, *given))
                report(serving_at(server.url), "http")
            except LehrError as error:
                report(f"not serving over HTTP: {error}", "http", Level.WARNING)
        yield


@contextlib.asynccontextmanager
async def _plane(
    deployment: Deployment, generating: Generation, ended: Ending
) -> AsyncIterator[tuple[ControlPlane, Parts]]:
    """A control plane, ready to start; its attempts to publish are reported."""
    _warn_of_unused(deployment.base)
    try:
        async with control_plane(deployment, named_store(), generating, ended.unless) as (plane, made_of):
            plane.listeners.append(_Reporter())
            async with logged_activity(plane):
                yield plane, made_of
    except NotPublishableError as error:
        from lehr.cli.diagnostics import render

        report(render(error.diagnostics, colour=sys.stderr.isatty()))
        raise


# --- output -------------------------------------------------------------------------


class _Reporter:
    """Reports results of passes over the source, each only if it differs from the previous one."""

    def __init__(self) -> None:
        self._last: tuple[object, ...] = ()
        self._remarks: tuple[Diagnostic, ...] = ()

    def __call__(self, attempt: Attempt) -> None:
        remarks = tuple(item for item in attempt.diagnostics if item.code == REMARK)
        if remarks == self._remarks:  # reported once, not with every commit
            rest = tuple(item for item in attempt.diagnostics if item not in remarks)
            attempt = replace(attempt, diagnostics=rest)
        self._remarks = remarks
        shown = (attempt.publication, attempt.sources, attempt.diagnostics)
        if shown == self._last:
            return
        before, self._last = self._last[:1], shown
        if attempt.publication is Publication.PUBLISHED:
            changed = formatting.counted(len(attempt.changed), "asset")
            report(f"{_in_force(attempt)} published: {changed} changed", "published")
        if attempt.publication in (Publication.REFUSED, Publication.UNREADABLE):
            report("\n".join(refused(attempt, attempt.at)), "refused", Level.ERROR)
        elif before == (Publication.UNREADABLE,) and attempt.publication is Publication.UNCHANGED:
            report(f"the source is readable again; {_in_force(attempt)} stays in force", "recovered")
        elif attempt.diagnostics:
            from lehr.cli.diagnostics import render

            report(render(attempt.diagnostics), "diagnostics", Level.WARNING)


def _in_force(attempt: Attempt) -> str:
    return f"{attempt.partition}@{attempt.sequence}"


async def _report_changes(plane: ControlPlane) -> None:
    """Report the overall status whenever nothing is in progress and it differs from the last report.

    What is not settled is reported once a minute at most: which assets those are may change all the time.
    """
    before: frozenset[str] | None = None
    clock, not_before = SystemClock(), 0.0
    while True:
        found = plane.enforcer.unsettled
        if plane.at_rest and found != before and (not (found and before) or clock.monotonic() >= not_before):
            before, not_before = found, clock.monotonic() + MINUTE
            total = formatting.counted(plane.enforcer.assets, "asset")
            if not plane.enforcer.assets:
                report("nothing to do: no asset is in force")
            elif before:
                named = ", ".join(sorted(before)[:3]) + (", ..." if len(before) > 3 else "")
                report(f"{len(before)} of {total} not settled: {named}; see `lehr why --all`")
            else:
                report(f"production is as intended: {total}")
        await plane.enforcer.changed()


@contextlib.contextmanager
def _progress(plane: ControlPlane) -> Iterator[None]:
    """A progress bar of settled assets, on a terminal."""
    if not sys.stderr.isatty() or as_json():
        yield
        return
    with drawn(timed=False) as progress:
        bar = progress.add_task("assets settled", total=plane.enforcer.assets)

        async def follow() -> None:
            while True:
                total, left = plane.enforcer.assets, len(plane.enforcer.unsettled)
                pushing = ", ".join(operation.asset for operation, _said in plane.enforcer.pushes()[:3])
                description = f"pushing {pushing}" if pushing else "assets settled"
                progress.update(bar, total=total, completed=total - left, description=description)
                await SystemClock().sleep(_LOOK_SECONDS)

        following = asyncio.create_task(follow())
        try:
            yield
        finally:
            following.cancel()


def _report_what_blocks(made_of: Parts, plane: ControlPlane, only: Selector | None) -> None:
    if plane.enforcer.trouble:
        report(f"the newest incarnation is not enforced: {plane.enforcer.trouble}")
    reading = Reading(
        made_of.store, plane.partition, SystemClock().now(), inert_in(made_of.store, plane.partition)
    )
    overview = replace(
        survey(reading, only=only), attempt=None
    )  # the result was already reported with excerpts
    among = None if only is None else {row.id for row in rows(reading, only)}
    causes = read_root_causes(reading, among=among)
    print_lines(overview_lines(overview, causes, plane.partition, reading.now, plane.state()))


def _warn_of_unused(folder: Path) -> None:
    """Warn about a `.lehr` in a workspace: its author may think that it is used."""
    unused = folder / UNUSED
    if unused.exists() or unused.is_symlink():
        report(
            f"{unused} is not used: state is never read from a workspace, where git writes. "
            "Remove it, or pass --state",
            "state",
            Level.WARNING,
        )
