"""The guide to rollouts in waves leads from nothing to a rollout that goes on, back, and away."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from lehr.rollouts.metrics import About
from lehr.rollouts.policy import RolloutPolicy
from tests.docs.test_tutorials import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "roll-out-in-waves.md").read_text()

# People take longer to read on than a rollout takes to begin or to end.
_COMMANDS = re.compile(r"^(lehr rollout (?!show|history).*)$", re.MULTILINE)
_SHOWN = re.compile(r"^lehr rollout show$", re.MULTILINE)


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    patient = _COMMANDS.sub(r"until \1; do sleep 0.2; done", PAGE)
    patient = _SHOWN.sub("sleep 1; lehr rollout show", patient)
    output = run(patient, folder)
    for block in re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        title, *lines = block.splitlines()
        assert title in output
        assert all(line in output for line in lines if line.endswith(("under way", "--reason TEXT`")))
    assert "customers complain" in output
    assert "begins, to incarnation 5, in an emergency: version 3 leaks addresses" in output
    assert "version 5\nversion 5\nversion 5" in output  # the log of `lehr run` may follow


def test_the_policies_of_the_guide_can_be_used() -> None:
    found = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    texts = [text for text in found if "lehr.RolloutPolicy" in text]
    _, validated = (msgspec.convert(msgspec.yaml.decode(text)["payload"], RolloutPolicy) for text in texts)
    about = About("berlin", {"region": "eu"}, "r1", 2)
    metrics = validated.validation.metrics
    assert metrics["errors"].question(about, 30.0).query.count('{cluster="berlin"}') == 2
    assert metrics["alerts"].question(about, 30.0).alerts == (("region", "eu"), ("severity", "page"))
    assert metrics["load-test"].question(about, 30.0).query == "/run?unit=berlin&rollout=r1&version=2"
    assert metrics["load-test"].once
    described = set(re.findall(r"^\| `(\$\{.*?\})`", PAGE, re.MULTILINE))
    assert described == {"${unit}", "${labels.NAME}", "${rollout}", "${target}"}
