"""Why an asset waits is shown whatever becomes of the search for who else does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from lehr.http.problems import ProblemError
from lehr.page.api import InPartition
from lehr.page.asset_screens import read_asset
from lehr.testing import run
from tests.unit.page.test_rollout_screens import Answers

CAUSE = {"id": "x", "root": "freeze/f1", "count": 2, "examples": ["a", "b"]}


def why(status: str = "Waiting", reason: str = "Frozen", past: Any = None) -> dict[str, Any]:
    return {"asset": {"id": "a", "status": status, "reason": reason}, "past": past}


class Hanging(Answers):
    """A server that is still looking for causes."""

    async def get(self, name: str, parameters: Mapping[str, str] = {}) -> Any:
        if name == "causes":
            await asyncio.sleep(3600)
        return await super().get(name, parameters)


def read(answers: Answers) -> dict[str, Any]:
    return run(lambda: read_asset(InPartition(answers, "shop"), {"id": "a"}), seed=1)


@pytest.mark.parametrize(
    "found",
    [
        why("Converged", "AsIntended"),
        why("Inert", ""),
        why(past={"at": "2026-01-01T00:00:00Z", "incarnation": ""}),
    ],
)
def test_a_settled_asset_and_an_earlier_time_are_not_asked_about(found: dict[str, Any]) -> None:
    answers = Answers(why=found, asset={})
    shown = read(answers)
    assert (shown["waits"], shown["cause"]) == (False, None)
    assert "causes" not in answers.asked


@pytest.mark.parametrize("found", [why(), why("Converged", "AwaitingRelease"), why("Stalled", "")])
def test_an_asset_that_waits_has_its_cause(found: dict[str, Any]) -> None:
    answers = Answers(why=found, asset={}, causes={"causes": [CAUSE]})
    shown = read(answers)
    assert shown["cause"] == CAUSE
    assert answers.asked["causes"]["of"] == "a"


@pytest.mark.parametrize(
    "answers",
    [
        Answers(why=why(), asset={}, causes=ProblemError("Busy", "too many requests are waiting", code="X")),
        Hanging(why=why(), asset={}, causes={"causes": [CAUSE]}),
        Answers(why=why(), asset={}, causes={"causes": []}),
    ],
)
def test_without_an_answer_in_time_the_screen_does_without(answers: Answers) -> None:
    shown = read(answers)
    assert (shown["waits"], shown["cause"]) == (True, None)


def test_an_asset_that_has_left_intent_has_a_screen() -> None:
    gone = ProblemError("NotFound", "there is no such asset", code="X")
    assert read(Answers(why=why("Orphaned", ""), asset=gone))["asset"] is None
