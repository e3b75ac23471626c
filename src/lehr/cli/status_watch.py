"""`lehr status --watch`: on a terminal one picture that changes, elsewhere every change."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lehr.cli.live import Entries, Lines, Live, follow
from lehr.cli.output import json_line, print_lines
from lehr.cli.screen import Picture, Screen, shows_pictures
from lehr.cli.status import StatusNow, reports, rollouts, status_document, status_lines
from lehr.query.overview import Overview, survey
from lehr.query.partition_view import Reading

if TYPE_CHECKING:
    from lehr.rollouts.status import RolloutStatus

_LOOK_SECONDS = 1.0
_SURVEY_SECONDS = 10.0


def watch_status(reading: Reading, form: str, place: str) -> None:
    """Show the status until interrupted."""
    if form == "json" or not shows_pictures():
        follow(reading, _Changes(form, place), _LOOK_SECONDS)
    surveys = _Surveys()

    def lines(now: Reading, entries: Entries) -> Iterable[str]:
        return status_lines(surveys.status(now, entries), now, place)

    with Screen() as screen:
        follow(reading, Picture(screen, lines), _LOOK_SECONDS)


class _Surveys:
    """The overview, which is made again only if it may have changed."""

    def __init__(self) -> None:
        self._overview: Overview | None = None
        self._rollouts: Sequence[RolloutStatus] = ()
        self._made_at = 0.0

    def status(self, reading: Reading, entries: Entries) -> StatusNow:
        """The status now."""
        return StatusNow(self._at(reading, entries), *reports(), self._rollouts)

    def _at(self, reading: Reading, entries: Entries) -> Overview:
        overview = self._overview
        # Controls that expire and results of the source have no entry in the feed.
        old = not 0 <= reading.now - self._made_at < _SURVEY_SECONDS
        if (
            overview is None
            or entries is None
            or entries
            or old
            or reading.records.attempt(reading.partition) != overview.attempt
        ):
            overview = self._overview = survey(reading)
            self._rollouts = rollouts(reading)
            self._made_at = reading.now
        return overview


class _Changes(Lines, Live):
    """The status, again whenever something other than a time has changed."""

    def __init__(self, form: str, place: str) -> None:
        self._form = form
        self._place = place
        self._surveys = _Surveys()
        self._shown: object = None

    def show(self, reading: Reading, entries: Entries) -> None:
        found = self._surveys.status(reading, entries)
        first, new = self._shown is None, without_times(found)
        if new == self._shown:
            return
        if self._form == "json":
            print(json_line(status_document(found)))
        else:
            print_lines([*([] if first else [""]), *status_lines(found, reading, self._place)])
        sys.stdout.flush()
        self._shown = new


def without_times(status: StatusNow) -> object:
    """Facts that are equal at two moments between which nothing has happened."""
    overview, _report, run, found = status
    attempt = overview.attempt
    return (
        (run.active, run.process, run.standby),
        overview.newest,
        attempt and (overview.not_published, attempt.sources, attempt.diagnostics),
        overview.counts,
        [(group.status, group.reason, group.count) for group in overview.groups],
        overview.controls,
        overview.held_back,
        overview.operations,
        [(item.policy, item.state, item.rollout, item.wave, item.unblock) for item in found],
    )
