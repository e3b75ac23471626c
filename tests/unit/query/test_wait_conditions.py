"""What a wait still waits for, and whether waiting longer can help."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.base.diagnostics import Diagnostic
from lehr.model.attempt import Attempt, Publication
from lehr.model.control import ControlKind
from lehr.model.decision import Status
from lehr.model.incarnation import SourceRevision
from lehr.model.reason import Reason
from lehr.query.asset_rows import rows
from lehr.query.overview import survey
from lehr.query.run_state import RunState
from lehr.query.wait_conditions import MET, missing_run, unconverged, unpublished

Shelf = Any


def attempt(shelf: Shelf, publication: Publication, sequence: int = 1) -> Attempt:
    problem = Diagnostic(code="YAML001", what="a mapping is not closed")
    return Attempt(
        partition=shelf.reading().partition,
        at=shelf.tick(),
        publication=publication,
        sources=(SourceRevision("git:/intent#main", "c0ffee0123456789"),),
        sequence=sequence,
        diagnostics=(problem,) if publication in (Publication.REFUSED, Publication.UNREADABLE) else (),
    )


def test_a_refused_commit_ends_a_wait_at_once_and_is_named(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    left = unpublished(attempt(shelf, Publication.REFUSED), shelf.reading().newest())
    assert left.final
    assert left.what == ("the newest commit c0ffee012345 was refused: a mapping is not closed",)
    assert left.fix


def test_a_source_that_cannot_be_read_now_may_be_read_later(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a"))
    left = unpublished(attempt(shelf, Publication.UNREADABLE), shelf.reading().newest())
    assert left.what
    assert not left.final


def test_what_was_published_has_to_be_readable_before_anything_counts(shelf: Shelf) -> None:
    incarnation = shelf.publish(shelf.asset("a"))
    assert unpublished(attempt(shelf, Publication.PUBLISHED), incarnation) == MET
    assert unpublished(attempt(shelf, Publication.UNCHANGED), incarnation) == MET
    assert unpublished(attempt(shelf, Publication.PUBLISHED, 2), incarnation).what
    assert unpublished(None, incarnation).what


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (RunState(active=False, now=9.0), "never active there"),
        (RunState(active=False, now=9.0, seen_at=1.0), "last seen 8s ago"),
        (RunState(active=True, now=9.0, partition="other"), "partition other, not shop"),
    ],
)
def test_without_a_lehr_run_for_the_partition_nothing_is_waited_for(run: RunState, said: str) -> None:
    left = missing_run(run, "shop", "/srv/state", "8s ago" if run.seen_at else "")
    assert left.final
    assert said in left.what[0]
    assert "/srv/state" in left.what[0]


def test_a_lehr_run_that_starts_is_waited_for() -> None:
    left = missing_run(RunState(active=False, now=9.0, process=7), None, "/srv/state", "")
    assert left.what
    assert not left.final
    assert missing_run(RunState(active=True, now=9.0, partition="shop"), "shop", "", "") == MET


def pinned_to_the_first(shelf: Shelf, newest: str) -> None:
    shelf.publish(shelf.asset("a", "1"))
    shelf.publish(shelf.asset("a", newest), shelf.asset("b"))
    shelf.push("a", 1, 1)
    shelf.adopt("b", 2)
    shelf.say(ControlKind.PIN, "a", incarnation=1)
    shelf.decide("a", Status.CONVERGED, Reason.PINNED)
    shelf.decide("b", Status.CONVERGED)


def test_what_a_pin_holds_back_is_converged_for_those_alone_who_allow_it(shelf: Shelf) -> None:
    pinned_to_the_first(shelf, "2")
    reading = shelf.reading()
    left = unconverged(reading, rows(reading), allow_pinned=False)
    assert left.final
    assert left.what == ("a: pinned to shop@1",)
    assert "--allow-pinned" in left.fix
    assert unconverged(reading, rows(reading), allow_pinned=True) == MET
    assert [item.id for item in survey(reading).held_back] == ["a"]


def test_a_pin_to_what_is_newest_anyway_holds_nothing_back(shelf: Shelf) -> None:
    pinned_to_the_first(shelf, "1")
    reading = shelf.reading()
    assert unconverged(reading, rows(reading), allow_pinned=False) == MET
    assert not survey(reading).held_back


def test_what_is_under_way_beside_a_pin_is_waited_for(shelf: Shelf) -> None:
    pinned_to_the_first(shelf, "2")
    shelf.decide("b", Status.WAITING)
    reading = shelf.reading()
    left = unconverged(reading, rows(reading), allow_pinned=False)
    assert not left.final
    assert [line.split(":")[0] for line in left.what] == ["b"]


def test_what_waits_to_be_released_is_waited_for_and_no_person_has_to_act(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a", "1"))
    shelf.publish(shelf.asset("a", "2"))
    shelf.push("a", 1, 1)
    shelf.release("a", 1)
    shelf.decide("a", Status.CONVERGED, Reason.AWAITING_RELEASE)
    reading = shelf.reading()
    left = unconverged(reading, rows(reading), allow_pinned=True)
    assert left.what == ("a: as in shop@1; newer content is not released to it yet",)
    assert not left.final
    assert [(item.id, item.incarnation, item.released) for item in survey(reading).held_back] == [
        ("a", 1, True)
    ]


def test_what_is_released_is_converged_once_its_turn_knows(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a", "1"))
    shelf.publish(shelf.asset("a", "2"))
    shelf.push("a", 1, 2)
    shelf.decide("a", Status.CONVERGED, Reason.AWAITING_RELEASE)
    shelf.release("a", 2)
    reading = shelf.reading()
    assert unconverged(reading, rows(reading), allow_pinned=False).what
    shelf.decide("a", Status.CONVERGED)
    reading = shelf.reading()
    assert unconverged(reading, rows(reading), allow_pinned=False) == MET


def test_what_was_released_before_its_owner_changed_is_converged(shelf: Shelf) -> None:
    shelf.publish(shelf.asset("a", "1"))
    shelf.push("a", 1, 1)
    shelf.release("a", 1)
    shelf.publish(shelf.asset("a", "1", Owner={"team": "web"}))
    shelf.adopt("a", 2)
    shelf.decide("a", Status.CONVERGED)
    reading = shelf.reading()
    assert unconverged(reading, rows(reading), allow_pinned=False) == MET
    assert not survey(reading).held_back
