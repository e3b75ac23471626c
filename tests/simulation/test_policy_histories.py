"""Histories that all have a rollout policy. Each of these seeds has raised an alarm once."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from lehr.cli.main import cli
from lehr.testing.sim.suite import PolicyHistory, play

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
    8738: "the judge counted pushes of two contents as repairs of one",
    9265: "a push stopped for content that it was already pushing",
    20096: "an asset was pushed with what another had before its push, which had ended meanwhile",
    20440: "the judge expected a unit to be good whose content reads an output that nothing makes any more",
    22368: "the judge held an asset to its stall although it had other content in between",
    24275: "a dependency settled under another release before a turn from before that release looked at it",
    40420: "the judge took a push that was over before a person asked to retry for the one under way",
    8611: "the judge did not look at units when a policy came back",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_that_has_raised_an_alarm_raises_none(seed: int) -> None:
    assert play(seed, PolicyHistory).violations == ()


def test_the_commands_play_and_tell_them() -> None:
    ran = CliRunner().invoke(cli, ["sim", "run", "--policies", "--first", "9265", "--seeds", "1"])
    assert ran.exit_code == 0
    told = CliRunner().invoke(cli, ["sim", "show", "9265", "--policies"])
    assert "policy-1" in told.stdout
    assert "policy-1" not in CliRunner().invoke(cli, ["sim", "show", "9265"]).stdout
    replayed = CliRunner().invoke(cli, ["sim", "replay", "9265", "--policies", "-o", "json"])
    assert json.loads(replayed.stdout)["events"] == play(9265, PolicyHistory).events != play(9265).events
