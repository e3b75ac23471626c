"""The screen of how an asset differs: intended, in production, last applied, and the origin of each field."""

from __future__ import annotations

import re

import pytest

from lehr.base.digest import Digest
from lehr.model.asset import AssetId
from lehr.model.decision import Condition, Decision, Status
from lehr.model.diff import Change, Diff, Effects, Goal
from lehr.model.operation import LedgerEntry
from lehr.model.reason import Reason
from lehr.model.writes import Adopt, RecordDecision, TakeLease
from lehr.store.sqlite import SqliteStore
from tests.integration.cli.test_blame import PLAIN, SITES, Place
from tests.integration.page.test_page import ask, shape, words
from tests.unit.query.conftest import PARTITION


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A file whose mode Grace has changed since it was applied, and another that a generator made."""
    place = Place(tmp_path_factory.mktemp("diff"))
    place.publish()
    for file in (place.state, *place.state.iterdir()):
        file.chmod(0o700 if file.is_dir() else 0o600)
    changed = PLAIN + '  mode: "0600"\n'
    place.write("Grace", "Hide the page", {"assets/page.yaml": changed})
    place.publish()
    place.write("Alan", "Serve sites", {"sites/b.yaml": "name: b\ngreeting: hi\n", "generators/s.py": SITES})
    place.publish()
    store = SqliteStore(place.state / "state.sqlite")
    content = {"size": 5, "digest": "2cf24dba"}
    changes = (
        Change("content", content, {"size": 3, "digest": "x"}),
        Change("mode", "0600", "0644"),
        Change("temporary", None, "left by an unfinished push"),
    )
    diff = Diff(changes, Effects(destructive=True, disruptive=True), notes=("it was moved",))
    condition = Condition(Status.WAITING, Reason.FROZEN, "frozen", "wait")
    page = AssetId("page")
    goal = Goal.PRESENT
    entry = LedgerEntry(PARTITION, page, Digest("d"), 1, goal, None, 5.0)
    decision = Decision(
        partition=PARTITION,
        asset=page,
        at=6.0,
        content=3,
        governing=3,
        goal=goal,
        condition=condition,
        event="start",
        diff=diff,
    )
    [_epoch, *refused] = store.commit(
        [TakeLease(PARTITION, "one", 1.0), Adopt(entry), RecordDecision(decision)]
    )
    assert refused == [None, None]
    store.close()
    return place


def test_each_field_that_differs_has_its_line_commit_and_author(place: Place) -> None:
    [asset, diff] = ask(place.state, "/p/shop/assets/page", "/p/shop/diff/page")
    assert shape(asset).links.count("/p/shop/diff/page") == 2
    text = words(shape(diff))
    assert "page: 3 differences" in text
    assert re.search(
        r"mode ?0600 ?0644 ?0644 ?set at assets/page.yaml:7[0-9a-f]{12} by Grace, \S+ ago: Hide", text
    )
    assert re.search(r"set at assets/page.yaml:6[0-9a-f]{12} by Ada, \S+ ago: Begin", text)
    assert "addons/lehr.Ownerchanged in intent" in text
    assert "temporary■ removed by the push" in text
    assert "The push destroys what cannot be restored" in text
    assert "The push interrupts service" in text
    assert "it was moved" in text
    assert "declared at assets/page.yaml:2" in text


def test_a_value_that_the_plugin_does_not_show_is_not_shown_from_intent(place: Place) -> None:
    [diff] = ask(place.state, "/p/shop/diff/page")
    text = words(shape(diff))
    assert "2cf24dba" in text
    assert "as intended" in text
    assert "hello" not in text


def test_an_asset_of_a_generator_names_it_before_anything_was_compared(place: Place) -> None:
    [diff] = ask(place.state, "/p/shop/diff/b/file")
    text = words(shape(diff))
    assert "b/file: not compared with production" in text
    assert "Last applied never" in text or "Last appliednever" in text
    assert "made by generators/s.py:7" in text
    assert "(generators/s.py:sites)" in text
    assert "from sites/b.yaml" in text
