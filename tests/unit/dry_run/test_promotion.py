"""How a promotion is written among the sources of a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lehr.base.digest import digest_bytes
from lehr.dry_run.promotion import Chosen, pin
from lehr.model.asset import Partition
from lehr.model.declared_sources import declared_sources
from lehr.model.incarnation import Incarnation
from tests.codes import raises

DIGEST = digest_bytes(b"42")
HERE = Path("/srv/production")


def chosen(field: str = "state", place: str = "/srv/staging") -> Chosen:
    header = Incarnation(Partition("staging"), 42, DIGEST, DIGEST, (), DIGEST, 0.0, 1)
    return Chosen(header, field, Path(place), ())


def entry(**more: Any) -> dict[str, Any]:
    return {"partition": "staging", "state": "../staging", "incarnation": 41, "digest": "0" * 40} | more


def test_the_pin_of_the_one_source_of_the_partition_is_replaced_and_nothing_else() -> None:
    before = {"a": {"directory": "x"}, "tried": entry(), "b": {"directory": "y"}}
    after = pin(chosen(), None, HERE)(before)
    assert after == before | {"tried": entry(incarnation=42, digest=DIGEST)}
    assert list(after) == list(before)
    assert list(after["tried"]) == list(before["tried"])


def test_without_a_source_of_the_partition_one_of_its_name_is_added() -> None:
    after = pin(chosen(), None, HERE)({"a": {"directory": "x"}})
    assert after["staging"] == entry(incarnation=42, digest=DIGEST)
    assert "staging" in declared_sources(after)
    assert pin(chosen(), "other", HERE)({}).keys() == {"other"}


def test_a_file_takes_the_place_of_a_state_and_a_state_of_a_file() -> None:
    by_file = pin(chosen("archive", "/srv/s-42"), None, HERE)({"tried": entry()})["tried"]
    assert by_file["archive"] == "../s-42"
    assert "state" not in by_file
    back = pin(chosen(), None, HERE)({"tried": by_file})["tried"]
    assert back["state"] == "../staging"
    assert "archive" not in back


def test_a_place_that_is_the_same_stays_as_it_is_written() -> None:
    before = {"tried": entry(state="./../staging/x/..")}
    assert pin(chosen(), None, HERE)(before)["tried"]["state"] == "./../staging/x/.."
    assert pin(chosen(place="/srv/other"), None, HERE)(before)["tried"]["state"] == "../other"


def test_elsewhere_a_state_stays_what_it_is_called_there() -> None:
    assert pin(chosen(), None, None)({"tried": entry(state="../s")})["tried"]["state"] == "../s"
    assert pin(chosen(), None, None)({})["staging"]["state"] == "/srv/staging"


def test_another_file_replaces_the_file_before() -> None:
    before = {"tried": {"partition": "staging", "archive": "../s-41", "incarnation": 41, "digest": "0" * 40}}
    assert pin(chosen("archive", "/srv/s-42"), None, HERE)(before)["tried"]["archive"] == "../s-42"


def test_where_several_have_the_partition_one_is_named() -> None:
    several = {"one": entry(), "two": entry()}
    with raises("CLI128", match="one, two"):
        pin(chosen(), None, HERE)(several)
    assert pin(chosen(), "two", HERE)(several)["one"] == entry()


def test_what_is_another_partition_or_no_source_is_left_alone() -> None:
    others: list[Any] = [entry(partition="other"), 3, [], "a"]
    for value in others:
        with raises("CLI126", match="staging"):
            pin(chosen(), "named", HERE)({"named": value})
    with raises("CLI125"):
        pin(chosen(), None, HERE)([])


def test_what_somebody_else_has_pinned_meanwhile_is_not_undone() -> None:
    pinned = pin(chosen(), None, HERE)
    pinned({"tried": entry()})
    pinned({"tried": entry(), "another": {"directory": "x"}})
    with raises("CLI127"):
        pinned({"tried": entry(incarnation=43)})
