from __future__ import annotations

import json

import pytest

from benchmarks import figures


def test_a_figure_is_one_line_of_json_with_the_ratio_to_its_peer(capsys: pytest.CaptureFixture[str]) -> None:
    figures.report("create", 2.0, "s", 1000, peer=figures.Peer("pyinfra", 40.0), durability="full")
    line = json.loads(capsys.readouterr().out)
    assert {key: line[key] for key in ("figure", "value", "unit", "size")} == {
        "figure": "create",
        "value": 2.0,
        "unit": "s",
        "size": 1000,
    }
    assert (line["peer"], line["peer_value"], line["ratio"]) == ("pyinfra", 40.0, 0.05)
    assert line["durability"] == "full"
    assert line["machine"]["cpus"] >= 1


def test_a_peer_that_was_not_waited_for_is_a_bound_and_the_line_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures.report("build", 2.0, "s", 1000, peer=figures.Peer("slow", 300.0, at_least=True))
    figures.report("build", 2.0, "s", 1000, peer=figures.Peer("slow", 299.0))
    bound, measured = map(json.loads, capsys.readouterr().out.splitlines())
    assert (bound["peer_value"], bound["peer_at_least"]) == (300.0, True)
    assert "peer_at_least" not in measured


def test_a_peer_that_measured_zero_has_no_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    figures.report("refused", 0.5, "admissions", 20, peer=figures.Peer("pins of all", 0.0))
    line = json.loads(capsys.readouterr().out)
    assert (line["peer_value"], line["ratio"]) == (0.0, None)


def test_a_figure_without_a_peer_has_no_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    figures.report("p99", 0.123456, "s", 10)
    line = json.loads(capsys.readouterr().out)
    assert line["value"] == 0.1235
    assert "ratio" not in line
    assert "peer" not in line


@pytest.mark.parametrize(("percent", "expected"), [(50, 50.0), (99, 99.0), (100, 100.0), (0.5, 1.0)])
def test_a_percentile_is_the_nearest_rank(percent: float, expected: float) -> None:
    assert figures.percentile([float(value) for value in range(100, 0, -1)], percent) == expected


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        figures.percentile([], 99)
