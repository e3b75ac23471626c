"""What `lehr status` says of how much history is kept, and when production is as intended."""

from __future__ import annotations

import msgspec
import pytest

from lehr.base.digest import Digest
from lehr.cli.documents import of_run_state
from lehr.cli.status import StatusNow, as_intended, history_line
from lehr.cli.status_watch import without_times
from lehr.model.asset import Partition
from lehr.model.attempt import Attempt, Publication
from lehr.model.incarnation import Incarnation
from lehr.query.overview import Group, Overview
from lehr.query.run_state import History, RunState

DEFAULT = History(seconds=90 * 86_400.0, incarnations=1000)
NOW = 10_000.0


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (DEFAULT, "90d and the newest 1,000 incarnations are kept; nothing pruned since the start"),
        (
            msgspec.structs.replace(DEFAULT, pruned_at=NOW - 7200.0),
            "90d and the newest 1,000 incarnations are kept; last pruned 2h ago",
        ),
        (None, "everything is kept; automatic pruning is off"),
    ],
)
def test_an_active_run_says_what_it_keeps_and_when_it_last_pruned(history: History | None, said: str) -> None:
    run = RunState(active=True, now=NOW, history=history)
    assert history_line(run, NOW) == said


def test_without_an_active_run_nothing_is_pruned() -> None:
    assert history_line(RunState(active=False, now=NOW), NOW) == ""


def test_it_is_in_the_document_with_rfc_3339_times() -> None:
    history = msgspec.structs.replace(DEFAULT, pruned_at=0.0)
    document = of_run_state(RunState(active=True, now=NOW, history=history))
    assert document["history"] == {
        "seconds": 7_776_000.0,
        "incarnations": 1000,
        "pruned_at": "1970-01-01T00:00:00.000000Z",
    }


SHOP, NONE = Partition("shop"), Digest("")
PUBLISHED = Attempt(partition=SHOP, at=NOW, publication=Publication.PUBLISHED, sources=(), sequence=2)
GOOD = Overview(
    newest=Incarnation(SHOP, 2, NONE, NONE, (), NONE, NOW, 1),
    attempt=PUBLISHED,
    counts={"Converged": 1},
    groups=(),
    controls=(),
    held_back=(),
    operations=(),
)
ACTIVE = RunState(active=True, now=NOW)


def but(**changes: object) -> Overview:
    return msgspec.structs.replace(GOOD, **changes)


@pytest.mark.parametrize(
    ("overview", "run", "expected"),
    [
        (GOOD, ACTIVE, True),
        (GOOD, RunState(active=False, now=NOW), False),
        (GOOD, msgspec.structs.replace(ACTIVE, standby="another process enforces it"), False),
        (but(newest=None), ACTIVE, False),
        (but(attempt=msgspec.structs.replace(PUBLISHED, publication=Publication.REFUSED)), ACTIVE, False),
        (but(groups=(Group("Waiting", "Because", 1, (), None),)), ACTIVE, False),
    ],
)
def test_the_exit_code_says_whether_an_active_run_keeps_everything_as_intended(
    overview: Overview, run: RunState, expected: bool
) -> None:
    assert as_intended(overview, run) is expected


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (
            {"attempt": msgspec.structs.replace(PUBLISHED, at=NOW + 9, publication=Publication.UNCHANGED)},
            False,
        ),
        ({"attempt": msgspec.structs.replace(PUBLISHED, publication=Publication.REFUSED)}, True),
        ({"counts": {"Pushing": 1}}, True),
    ],
)
def test_a_watch_shows_the_status_again_unless_only_times_have_changed(
    change: dict[str, object], counts: bool
) -> None:
    run = RunState(active=True, now=NOW)
    later = msgspec.structs.replace(run, now=NOW + 9, source_looked_at=NOW + 9)
    after = StatusNow(msgspec.structs.replace(GOOD, **change), None, later)
    assert (without_times(after) != without_times(StatusNow(GOOD, None, run))) is counts
