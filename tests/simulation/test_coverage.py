"""`lehr sim coverage`: a line is reported as unreached until a history reaches it."""

from __future__ import annotations

from typing import Any

import msgspec
from click.testing import CliRunner, Result

from lehr.cli.sim.coverage import coverage
from lehr.testing.sim.suite import play
from tests.codes import raises

RARE = "condition Recovering"
MODULE = "lehr.enforce.step.comparison"
LINE = "Reason.RECOVERING"
MOST_SEEDS = 50


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(coverage, [*arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result


def report(first: int, seeds: int = 1, jobs: int = 1) -> dict[str, Any]:
    """What is said of `MODULE`."""
    options = ("--first", first, "--seeds", seeds, "--jobs", jobs, "-o", "json")
    found = msgspec.json.decode(call(MODULE, *map(str, options)).stdout)
    assert isinstance(found, dict)
    return found


def unreached(document: dict[str, Any]) -> dict[str, str]:
    """Unreached lines of the one module, by number."""
    [module] = document["modules"]
    assert [str(number) for number in module["unreached"]] == list(module["source"])
    assert module["lines"] - module["reached"] == len(module["unreached"])
    source = module["source"]
    assert isinstance(source, dict)
    return source


def seed(*, rare: bool) -> int:
    """A seed whose history takes the rare path, or does not take it."""
    return next(number for number in range(MOST_SEEDS) if (RARE in play(number).reached) is rare)


def test_a_line_that_only_a_rare_path_takes_is_unreached_until_a_history_takes_it() -> None:
    usual, rare = unreached(report(seed(rare=False))), unreached(report(seed(rare=True)))
    assert any(LINE in line for line in usual.values())
    assert not any(LINE in line for line in rare.values())


def test_several_processes_reach_together_what_each_history_reaches() -> None:
    alone = [unreached(report(first)) for first in range(2)]
    assert alone[0] != alone[1], "or there is nothing to merge"
    assert unreached(report(0, seeds=2, jobs=2)).keys() == alone[0].keys() & alone[1].keys()


def test_the_text_has_a_line_for_each_module_and_the_wide_text_the_source() -> None:
    number = seed(rare=False)
    options = ["--first", str(number), "--seeds", "1", "--jobs", "1"]
    result = call("lehr.checks.freeze", MODULE, *options)
    head, *modules, total = result.stdout.splitlines()
    assert head.split() == ["MODULE", "REACHED", "LINES", "SHARE", "NOT", "REACHED"]
    assert {line.split()[0] for line in modules} == {"lehr.checks.freeze", MODULE}
    assert total.startswith("total")
    assert "1 history in" in result.stderr
    wide = call(MODULE, *options, "-o", "wide").stdout
    assert LINE in wide
    assert LINE not in result.stdout


def test_an_unknown_module_is_an_error_before_anything_is_played() -> None:
    with raises("SIM106", match=r"lehr\.enforce\.stepp"):
        call("lehr.enforce.stepp", "--seeds", "1000000")
