"""`lehr wait` ends with 0 only where the newest commit is published and what it says is so."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import lehr.cli.wait
from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import LehrError
from lehr.cli.main import cli
from lehr.model.attempt import Attempt, Publication
from lehr.model.control import ControlKind
from lehr.model.decision import Status
from lehr.model.incarnation import SourceRevision
from lehr.model.reason import Reason
from lehr.query.run_state import RunState
from tests.unit.query.conftest import PARTITION, Shelf

ACTIVE = RunState(active=True, now=9.0, partition=PARTITION)
UNCHANGED = Attempt(
    partition=PARTITION,
    at=9.0,
    publication=Publication.UNCHANGED,
    sources=(SourceRevision("git:/intent#main", "c0ffee0123456789"),),
    sequence=1,
)
REFUSED = msgspec.structs.replace(
    UNCHANGED, publication=Publication.REFUSED, diagnostics=(Diagnostic(code="YAML001", what="not closed"),)
)
UNREADABLE = msgspec.structs.replace(UNCHANGED, publication=Publication.UNREADABLE)

Ends = Callable[..., int]


class Run:
    """A `lehr run` that is as it is told."""

    place = "/srv/state"

    def __init__(self, state: RunState, attempt: Attempt | None) -> None:
        self._state = state
        self._attempt = attempt

    def state(self) -> RunState:
        return self._state

    def look(self, timeout: float) -> Attempt | None:
        return self._attempt

    def close(self) -> None:
        pass


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    """The incarnation `shop@1` of one asset, which has converged."""
    made = Shelf(tmp_path / "state.db")
    made.publish(made.asset("a", "1"))
    made.push("a", 1, 1)
    made.decide("a", Status.CONVERGED)
    yield made
    made.close()


@pytest.fixture
def ends(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> Ends:
    """How `lehr wait` ends, over `shelf`, that does not wait; `run` and `attempt` are what it finds."""

    def call(*arguments: str, run: RunState = ACTIVE, attempt: Attempt | None = UNCHANGED) -> int:
        monkeypatch.setattr(lehr.cli.wait, "found_state", lambda: Path(Run.place))
        monkeypatch.setattr(lehr.cli.wait, "active_run", lambda: Run(run, attempt))
        reading = contextlib.nullcontext(shelf.reading())
        monkeypatch.setattr(lehr.cli.wait, "open_reading", lambda: reading)
        result = CliRunner().invoke(cli, ["wait", "--timeout", "0s", *arguments])
        assert result.exception is None or isinstance(result.exception, LehrError | SystemExit)
        return result.exit_code

    return call


def test_what_is_published_and_converged_ends_with_0(ends: Ends) -> None:
    assert ends() == 0
    assert ends("a") == 0
    assert ends("--for", "status=Converged") == 0


@pytest.mark.parametrize("goal", ["converged", "status=Converged"])
@pytest.mark.parametrize("attempt", [REFUSED, UNREADABLE, None], ids=["refused", "unreadable", "not looked"])
def test_no_goal_about_assets_is_reached_while_the_newest_commit_is_not_published(
    ends: Ends, goal: str, attempt: Attempt | None
) -> None:
    assert ends("--for", goal, attempt=attempt) == 1


@pytest.mark.parametrize("goal", ["converged", "status=Converged"])
@pytest.mark.parametrize(
    "run",
    [
        RunState(active=False, now=9.0),
        RunState(active=False, now=9.0, seen_at=1.0),
        RunState(active=False, now=9.0, process=7),
        RunState(active=True, now=9.0, partition="other"),
    ],
    ids=["never", "ended", "starting", "another partition's"],
)
def test_no_goal_about_assets_is_reached_without_a_lehr_run_of_the_partition(
    ends: Ends, goal: str, run: RunState
) -> None:
    assert ends("--for", goal, "--partition", PARTITION, run=run) == 1


def test_what_a_pin_holds_back_ends_with_0_only_if_that_is_allowed(ends: Ends, shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a", "2"))
    shelf.say(ControlKind.PIN, "a", incarnation=1)
    shelf.decide("a", Status.CONVERGED, Reason.PINNED)
    attempt = msgspec.structs.replace(UNCHANGED, sequence=2)
    assert ends(attempt=attempt) == 1
    assert ends("--allow-pinned", attempt=attempt) == 0


def test_an_incarnation_that_was_published_once_needs_neither(ends: Ends) -> None:
    inactive = RunState(active=False, now=9.0)
    assert ends("--for", "incarnation=1", run=inactive, attempt=REFUSED) == 0
    assert ends("--for", "incarnation=2", run=inactive, attempt=None) == 1


def test_a_run_that_was_just_started_may_yet_have_to_create_its_state(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([None, None, Path(Run.place)])

    def started() -> Run:
        assert next(looks, "found") == "found"
        return Run(ACTIVE, UNCHANGED)

    assert ends() == 0
    monkeypatch.setattr(lehr.cli.wait, "found_state", lambda: next(looks))
    monkeypatch.setattr(lehr.cli.wait, "active_run", started)
    result = CliRunner().invoke(cli, ["wait", "--timeout", "60s"])
    assert result.exit_code == 0, result.output


def test_without_a_state_a_wait_says_so_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["wait", "--timeout", "0.1s"])
    assert isinstance(result.exception, LehrError)
    assert result.exception.code == "CLI158"
