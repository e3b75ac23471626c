"""Histories that all have a rollout policy. Each of these seeds has once raised an alarm."""

from __future__ import annotations

import pytest

from lehr.testing.sim import random_policies, suite

SEEDS = {
    2154: "a read that failed took a reader of a changed asset out of its unit",
    2702: "a departed asset that only a policy held was not woken when the policy went away",
    3112: "the same",
    6189: "the same",
    5190: "content whose last push was of a pruned incarnation skipped its soak",
    5359: "newer content withdrew a rollback under way; retention removed the release that counted",
    5166: "a removed asset came back while the turndown of what it refers to was checked",
    5219: "the release of what an indirect dependency reads was overlooked by admission",
    6350: "a removed dependency that was coming back was compared as removed",
    8611: "the judge did not look at units when a policy came back",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_that_has_raised_an_alarm_raises_none(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_policies, "_SHARE", 1.0)
    assert suite.play(seed).violations == ()
