"""`lehr rollout show --watch`: on a terminal one picture that changes, elsewhere every change."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec

from lehr.base.moments import plain
from lehr.cli.active_run import run_state
from lehr.cli.live import Entries, Lines, Live, follow
from lehr.cli.output import json_line, print_lines
from lehr.cli.rollout.current import commit_of, status_of
from lehr.cli.rollout.text import status_lines
from lehr.cli.screen import Picture, Screen, shows_pictures
from lehr.model.provenance import Commit
from lehr.query.partition_view import Reading
from lehr.rollouts.status import RolloutStatus
from lehr.strategist.documents import rollout_document

_LOOK_SECONDS = 1.0


def watch_rollout(reading: Reading, policy: str | None, form: str) -> None:
    """Show the rollout of a policy until interrupted."""
    policy = str(status_of(reading, policy).policy)
    if form == "json" or not shows_pictures():
        follow(reading, _Changes(policy, form), _LOOK_SECONDS)
    commits = _Commits()

    def lines(now: Reading, _entries: Entries) -> Iterable[str]:
        return _lines(now, status_of(now, policy), commits)

    with Screen() as screen:
        follow(reading, Picture(screen, lines), _LOOK_SECONDS)


class _Commits:
    """Commits by incarnation: they do not change."""

    def __init__(self) -> None:
        self._known: dict[int, Commit | None] = {}

    def of(self, reading: Reading, sequence: int) -> Commit | None:
        if sequence not in self._known:
            self._known[sequence] = commit_of(reading, sequence)
        return self._known[sequence]


def _lines(reading: Reading, status: RolloutStatus, commits: _Commits) -> Iterable[str]:
    commit = commits.of(reading, status.target)
    return status_lines(status, reading.partition, commit, reading.now, alive=run_state().active)


class _Changes(Lines, Live):
    """The status, again whenever something other than a time has changed."""

    def __init__(self, policy: str, form: str) -> None:
        self._policy = policy
        self._form = form
        self._commits = _Commits()
        self._shown: object = None

    def show(self, reading: Reading, entries: Entries) -> None:
        status = status_of(reading, self._policy)
        first, new = self._shown is None, without_times(status)
        if new == self._shown:
            return
        if self._form == "json":
            print(json_line(plain(rollout_document(status, self._commits.of(reading, status.target)))))
        else:
            print_lines([*([] if first else [""]), *_lines(reading, status, self._commits)])
        sys.stdout.flush()
        self._shown = new


def without_times(status: RolloutStatus) -> object:
    """Facts that are equal at two moments between which nothing has happened."""
    units = [(unit.id, unit.state, unit.validated, unit.since) for unit in status.units]
    return status.rollout, status.state, status.wave, units, status.unblock, msgspec.to_builtins(status.past)
