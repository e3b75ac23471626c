"""`lehr status --watch`: on a terminal one picture that changes, elsewhere every change."""

from __future__ import annotations

import sys

from lehr.cli.live import Entries, Lines, Live, follow
from lehr.cli.output import json_line, print_lines
from lehr.cli.screen import Screen, shows_pictures
from lehr.cli.status import StatusNow, reports, status_document, status_lines
from lehr.query.overview import Overview, survey
from lehr.query.partition_view import Reading

_LOOK_SECONDS = 1.0
_SURVEY_SECONDS = 10.0


def watch_status(reading: Reading, form: str, place: str) -> None:
    """Show the status until interrupted."""
    if form == "json" or not shows_pictures():
        follow(reading, _Changes(form, place), _LOOK_SECONDS)
    with Screen() as screen:
        follow(reading, _Picture(screen, place), _LOOK_SECONDS)


class _Surveys:
    """The overview, which is made again only if it may have changed."""

    def __init__(self) -> None:
        self._overview: Overview | None = None
        self._made_at = 0.0

    def at(self, reading: Reading, entries: Entries) -> Overview:
        """The overview now."""
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
            self._made_at = reading.now
        return overview


class _Picture(Live):
    """The status on a terminal."""

    def __init__(self, screen: Screen, place: str) -> None:
        self._screen = screen
        self._place = place
        self._surveys = _Surveys()
        self._lines: list[str] = []

    def show(self, reading: Reading, entries: Entries) -> None:
        found = StatusNow(self._surveys.at(reading, entries), *reports())
        self._lines = list(status_lines(found, reading, self._place))
        self._screen.draw(self._lines)

    def report(self, trouble: str) -> None:
        self._screen.draw([*self._lines, f"not current {trouble}; trying again"] if trouble else self._lines)

    def pause(self, seconds: float) -> None:
        self._screen.pause(seconds)


class _Changes(Lines, Live):
    """The status, again whenever something other than a time has changed."""

    def __init__(self, form: str, place: str) -> None:
        self._form = form
        self._place = place
        self._surveys = _Surveys()
        self._shown: object = None

    def show(self, reading: Reading, entries: Entries) -> None:
        found = StatusNow(self._surveys.at(reading, entries), *reports())
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
    overview, _report, run = status
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
    )
