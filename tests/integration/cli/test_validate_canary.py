"""`lehr validate-canary` judges recorded counters."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lehr.cli.validate_canary import validate_canary as command
from tests.unit.canary.simulated import poisson

START = 1_767_225_600


def recording(
    path: Path,
    *,
    minutes: int = 60,
    ratio: float = 1.0,
    rate: float = 0.01,
    traffic: float = 300,
    restart_at: int | None = None,
    transient: int = 0,
    worse: float = 3,
    without: str = "",
) -> Path:
    """Samples every 15 seconds of three canary and five control replicas, which started long ago."""
    chance = random.Random(f"{minutes} {ratio} {rate}")
    replicas = [("canary", f"c{n}") for n in range(3)] + [("control", f"b{n}") for n in range(5)]
    counters = {key: [chance.randrange(10**6), chance.randrange(10**4)] for key in replicas}
    lines = ["time,group,replica,requests,errors"]
    for step in range(minutes * 4 + 1):
        for key in replicas:
            wrong = ratio if key[0] == "canary" else 1.0
            wrong *= worse if key[0] == "canary" and 15 * step <= transient else 1
            served = poisson(chance, traffic)
            failed = poisson(chance, served * min(1.0, rate * wrong))
            value = counters[key]
            value[0] += served
            value[1] += failed
            if step == restart_at:
                value[:] = [served, failed]
            if key[0] != without:
                lines.append(f"{START + 15 * step},{key[0]},{key[1]},{value[0]},{value[1]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments)], input=stdin)


def judged(path: Path, *arguments: str | Path) -> Any:
    result = run("--from", path, "-o", "json", *arguments)
    document = json.loads(result.stdout)
    assert result.exit_code == {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 4}[document["verdict"]]
    return document


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return tmp_path / "metrics.csv"


def test_thirty_percent_errors_fail_within_a_minute(csv: Path) -> None:
    found = judged(recording(csv, ratio=30))
    assert (found["verdict"], found["decided_at"]) == ("FAIL", START + 60)
    [metric] = found["metrics"]
    assert (metric["name"], metric["verdict"], metric["margin"]) == ("errors", "FAIL", 1.25)
    assert metric["e_fail"] >= metric["fail_at"]
    assert metric["interval"][0] > 1.25
    assert metric["canary"]["replicas"] == 3
    assert metric["reason"]


def test_an_equal_canary_passes_and_says_since_when(csv: Path) -> None:
    found = judged(recording(csv))
    assert found["verdict"] == "PASS"
    assert START + 300 <= found["decided_at"] <= START + 3600


def test_a_verdict_is_that_of_the_data_until_then(csv: Path) -> None:
    found = judged(recording(csv, ratio=2.0))
    assert found["verdict"] == "FAIL"
    lines = csv.read_text().splitlines()
    until = [line for line in lines[1:] if float(line.partition(",")[0]) <= found["decided_at"]]
    csv.write_text("\n".join([lines[0], *until]) + "\n")
    assert judged(csv) == found


def test_looks_can_be_as_frequent_as_samples(csv: Path) -> None:
    recording(csv, ratio=30)
    assert judged(csv, "--look-every", "15s")["decided_at"] == START + 30
    assert judged(csv, "--look-every", "5m")["decided_at"] == START + 300


@pytest.mark.parametrize("group", ["canary", "control"])
def test_one_group_alone_is_inconclusive(csv: Path, group: str) -> None:
    found = judged(recording(csv, without=group))
    assert (found["verdict"], found["decided_at"]) == ("INCONCLUSIVE", None)


def test_an_empty_recording_is_inconclusive(csv: Path) -> None:
    csv.write_text("time,group,replica,requests,errors\n")
    assert judged(csv)["verdict"] == "INCONCLUSIVE"


def test_little_traffic_is_inconclusive(csv: Path) -> None:
    assert judged(recording(csv, traffic=1))["verdict"] == "INCONCLUSIVE"


def test_a_restart_of_all_counters_is_not_a_regression(csv: Path) -> None:
    found = judged(recording(csv, restart_at=100))
    assert found["verdict"] == "PASS"
    assert found["restarts"] == 8


def test_some_more_errors_while_the_canary_starts_do_not_count(csv: Path) -> None:
    recording(csv, transient=60)
    assert judged(csv)["verdict"] == "PASS"
    never = csv.with_name("judge.yaml")
    never.write_text("warmup_seconds: 0\n")
    assert judged(csv, "--judge", never)["verdict"] == "FAIL"


def test_a_canary_that_is_broken_fails_during_a_long_warm_up(csv: Path) -> None:
    patient = csv.with_name("judge.yaml")
    patient.write_text("warmup_seconds: 600\n")
    found = judged(recording(csv, transient=600, worse=30), "--judge", patient)
    assert (found["verdict"], found["decided_at"]) == ("FAIL", START + 60)
    assert found["metrics"][0]["fail_margin"] >= 5
    assert judged(recording(csv, transient=600), "--judge", patient)["verdict"] == "PASS"


def test_rows_may_be_in_any_order_and_repeated(csv: Path) -> None:
    recording(csv, ratio=1.3)
    before = judged(csv)
    head, *rows = csv.read_text().splitlines()
    random.Random(1).shuffle(rows)
    csv.write_text("\n".join([head, *rows, *rows[:50]]) + "\n")
    after = judged(csv)
    # The order of replicas may change the last digit of a sum.
    assert [after[key] for key in ("verdict", "decided_at", "looks")] == [
        before[key] for key in ("verdict", "decided_at", "looks")
    ]
    assert after["metrics"][0]["canary"] == before["metrics"][0]["canary"]


def test_a_judge_file_sets_the_margin(csv: Path) -> None:
    judge = csv.with_name("judge.yaml")
    judge.write_text("metrics:\n  - {name: failures, events: errors, margin: 3}\n")
    found = judged(recording(csv, ratio=1.7), "--judge", judge)
    assert [found["verdict"], found["metrics"][0]["name"]] == ["PASS", "failures"]


def test_the_text_shows_rates_and_the_reason(csv: Path) -> None:
    result = run("--from", recording(csv, ratio=5))
    assert result.exit_code == 1
    assert result.stdout.startswith("FAIL")
    assert "errors: the canary is worse" in result.stdout
    assert "INTERVAL" in result.stdout


def test_stdin_is_read(csv: Path) -> None:
    result = run("--from", "-", "-o", "json", stdin=recording(csv, ratio=30, minutes=3).read_text())
    assert json.loads(result.stdout)["verdict"] == "FAIL"


def test_a_byte_order_mark_and_carriage_returns_are_no_problem(csv: Path) -> None:
    recording(csv, ratio=30, minutes=3)
    csv.write_bytes(b"\xef\xbb\xbf" + csv.read_bytes().replace(b"\n", b"\r\n"))
    assert judged(csv)["verdict"] == "FAIL"


def test_all_problems_are_shown_at_once(csv: Path) -> None:
    csv.write_text("time,group,replica,requests,errors\nsoon,canary,a,1,1\n1,other,b,x,1\n")
    result = run("--from", csv, "-o", "json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert [(item["code"], item["at"]["line"]) for item in json.loads(result.stderr)] == [
        ("CAN004", 2),
        ("CAN005", 3),
        ("CAN007", 3),
    ]
    assert "CAN005" in run("--from", csv).stderr


def test_bytes_that_are_not_text_are_refused(csv: Path) -> None:
    csv.write_bytes(b"time,group,replica,requests,errors\n1,canary,\xff,1,1\n")
    result = run("--from", csv)
    assert result.exit_code == 2
    assert "DOC002" in result.stderr
    csv.write_bytes(b"\x00\x01\x02" * 1000)
    assert run("--from", csv).exit_code == 2


def test_a_judge_that_cannot_be_used_is_refused(csv: Path) -> None:
    judge = csv.with_name("judge.yaml")
    judge.write_text("metrics:\n  - {name: a, events: eror}\n")
    result = run("--from", recording(csv, minutes=2), "--judge", judge)
    assert result.exit_code == 2
    assert "CAN011" in result.stderr
    judge.write_text("margin: 0.5\n")
    assert run("--from", csv, "--judge", judge).exit_code == 2


@pytest.mark.parametrize("value", ["0s", "soon", "-5s"])
def test_looks_need_time_between_them(csv: Path, value: str) -> None:
    assert run("--from", recording(csv, minutes=2), "--look-every", value).exit_code == 2


def test_a_file_that_does_not_exist_is_a_usage_error(csv: Path) -> None:
    assert run("--from", csv).exit_code == 2


def test_samples_from_before_the_push_do_not_count(csv: Path) -> None:
    """Replicas that are updated in place had another version before."""
    recording(csv, transient=600, worse=30)
    assert judged(csv)["verdict"] == "FAIL"
    found = judged(csv, "--pushed-at", str(START + 600))
    assert found["verdict"] == "PASS"
    assert found["decided_at"] >= START + 600 + 300


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1767225600000", "soon"])
def test_a_push_has_a_time_in_seconds(csv: Path, value: str) -> None:
    assert run("--from", recording(csv, minutes=2), "--pushed-at", value).exit_code == 2


def with_latency(path: Path, slow: float) -> Path:
    """The same, with a histogram: 2 % of the requests of controls take longer than 0.05 s."""
    lines = path.read_text().splitlines()
    rows = [f"{lines[0]},latency_le_0.01,latency_le_0.05,latency_le_1,latency_le_+Inf"]
    for line in lines[1:]:
        _, group, _, requests, _ = line.split(",")
        count = int(requests)
        over = round(count * 0.02 * (slow if group == "canary" else 1))
        rows.append(f"{line},{count // 2},{count - over},{count - over // 20},{count}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_canary_that_is_slower_fails_by_its_histogram(csv: Path) -> None:
    found = judged(with_latency(recording(csv, traffic=1500), slow=2))
    assert found["verdict"] == "FAIL"
    assert [item["name"] for item in found["metrics"] if item["verdict"] == "FAIL"] == ["latency_above_0.05"]


def test_a_canary_that_is_as_fast_passes(csv: Path) -> None:
    found = judged(with_latency(recording(csv, traffic=1500), slow=1))
    assert found["verdict"] == "PASS"
    names = [item["name"] for item in found["metrics"]]
    assert names == ["errors", "latency_above_0.01", "latency_above_0.05", "latency_above_1"]


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, "PASS"), (3.0, "FAIL")])
def test_looks_may_be_more_frequent_than_samples(csv: Path, ratio: float, verdict: str) -> None:
    """Samples of controls are seven seconds later than those of canaries."""
    lines = recording(csv, ratio=ratio).read_text().splitlines()
    later = (
        line.replace(line[:10], str(int(line[:10]) + 7), 1) if ",control," in line else line for line in lines
    )
    csv.write_text("\n".join(later) + "\n")
    assert judged(csv, "--look-every", "5s")["verdict"] == verdict
