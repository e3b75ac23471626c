"""One `lehr run` for a state folder, also after another one was refused."""

from __future__ import annotations

from pathlib import Path

from lehr.control.lock import exclusive
from tests.codes import raises


def test_who_is_refused_leaves_the_lock_to_who_holds_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with exclusive(state):
        for _ in range(2):  # the first one that is refused must not make room for the second
            with raises("CTL118"), exclusive(state):
                raise AssertionError("two hold one state folder")


def test_the_lock_can_be_taken_again_once_it_is_free(tmp_path: Path) -> None:
    for _ in range(2):
        with exclusive(tmp_path / "state"):
            assert (tmp_path / "state" / "lock").exists()
