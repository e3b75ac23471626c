"""Health is honest: whatever does not work is named, and only what a restart may fix fails `alive`."""

from __future__ import annotations

import pytest

from lehr.control.health import (
    STALLED_SECONDS,
    UNREAD_SECONDS,
    UNWRITTEN_SECONDS,
    Health,
    Vitals,
    alive,
    ready,
)


def failing(health: Health) -> dict[str, str]:
    return {check.name: check.why for check in health.checks if not check.ok}


def test_what_works_is_alive_and_ready() -> None:
    vitals = Vitals(queued=5, since_turn=STALLED_SECONDS, since_commit=UNWRITTEN_SECONDS, overdue=1.0)
    assert alive(vitals).ok
    assert ready(vitals).ok
    assert failing(ready(vitals)) == {}


@pytest.mark.parametrize(
    ("vitals", "words"),
    [
        (Vitals(defect="ValueError: broken"), "ValueError: broken"),
        (Vitals(overdue=STALLED_SECONDS + 1), "due since 121s"),
        (Vitals(queued=7, since_turn=STALLED_SECONDS + 1), "7 turns are queued"),
    ],
)
def test_a_loop_that_makes_no_progress_is_neither_alive_nor_ready(vitals: Vitals, words: str) -> None:
    assert words in failing(alive(vitals))["loops"]
    assert not ready(vitals).ok


@pytest.mark.parametrize(
    ("vitals", "name", "words"),
    [
        (Vitals(store_trouble="disk full"), "store", "disk full"),
        (Vitals(since_commit=UNWRITTEN_SECONDS + 1), "store", "nothing was written for 31s"),
        (Vitals(standby="another process has the lease"), "lease", "another process"),
        (Vitals(intent_trouble="shop@3 cannot be read"), "intent", "shop@3"),
    ],
)
def test_what_no_restart_fixes_is_not_ready_and_still_alive(vitals: Vitals, name: str, words: str) -> None:
    assert alive(vitals).ok
    assert not ready(vitals).ok
    assert words in failing(ready(vitals))[name]


def test_a_source_that_is_not_read_is_named_and_ready() -> None:
    found = ready(Vitals(since_source=UNREAD_SECONDS + 1))
    assert found.ok
    assert failing(found) == {"source": "the source was not read for 301s"}


def test_no_turn_while_nothing_is_queued_is_no_stall() -> None:
    assert alive(Vitals(queued=0, since_turn=1e6)).ok
