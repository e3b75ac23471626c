"""The pages about canaries: commands run as shown, and every field and figure exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from lehr.canary import Judge, Metric, MetricVerdict, Verdict
from lehr.canary.recording import read_recording
from lehr.cli.judge_file import counter_problems, read_judge
from lehr.cli.validate_canary import validate_canary
from lehr.rollouts.metrics import About
from lehr.rollouts.policy import RolloutPolicy

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOW_TO = (DOCS / "how-to" / "judge-a-canary.md").read_text()
REFERENCE = (DOCS / "reference" / "canary-judge.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def test_the_how_to_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [recording] = blocks(HOW_TO, "csv")
    Path("metrics.csv").write_text(recording)
    assert len(read_recording("metrics.csv", recording.splitlines()).samples) == 4
    judge, _policy = blocks(HOW_TO, "yaml")
    Path("judge.yaml").write_text(judge)
    calls = [shlex.split(block) for block in blocks(HOW_TO, "sh")]
    assert calls
    for call in calls:
        assert call[:2] == ["lehr", "validate-canary"]
        result = CliRunner().invoke(validate_canary, call[2:])
        assert (result.exit_code, result.stderr) == (4, "")
        assert result.stdout.startswith("INCONCLUSIVE")


def test_the_policy_of_the_how_to_compares_replicas_of_a_unit() -> None:
    policy = msgspec.convert(msgspec.yaml.decode(blocks(HOW_TO, "yaml")[1])["payload"], RolloutPolicy)
    analysis = policy.validation.canary
    assert analysis is not None
    questions = dict(analysis.questions(About("berlin", {}, "r1", 2), policy.validation.look_every))
    assert questions.keys() == {"requests", "errors"}
    assert all('cluster="berlin"' in question.query for question in questions.values())


def test_the_judge_of_the_reference_can_be_used() -> None:
    [text] = blocks(REFERENCE, "yaml")
    file, problems = read_judge("judge.yaml", text.encode())
    assert problems == []
    assert file is not None
    counters = ["requests", "errors", "latency_le_0.25", "cache_hits", "cache_lookups"]
    assert list(counter_problems("metrics.csv", file, counters)) == []


def rows(heading: str) -> dict[str, str]:
    """The fields in the table after a heading of the reference, and their second column."""
    body = REFERENCE.partition(heading)[2].partition("\n\n#")[0].partition("\n\n|")[2].partition("\n\n")[0]
    found = re.findall(r"^\|? ?(`.+?`) \| (.*?) \|", body, re.MULTILINE)
    return {name: second for names, second in found for name in re.findall(r"`(\w+)`", names)}


def test_every_field_is_described_with_its_default() -> None:
    fields = {field.name: field for field in msgspec.structs.fields(Judge)}
    described = rows("# Judge files")
    assert set(described) == set(fields)
    for name, field in fields.items():
        if name != "metrics":
            assert float(described[name].strip("`")) == field.default, name
    assert set(rows("## Metrics")) == set(Metric.__struct_fields__)


def test_every_field_of_the_verdict_is_described() -> None:
    assert set(rows("## The verdict")) == set(Verdict.__struct_fields__)
    assert set(rows("started again from zero.")) == set(MetricVerdict.__struct_fields__)
