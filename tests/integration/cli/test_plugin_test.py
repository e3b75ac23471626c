"""`lehr plugin test`: the rules of asset plugins, for programs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.cli.main import cli

REMOTE = Path(__file__).parents[1] / "plugins/remote"


@pytest.fixture
def fixtures(tmp_path: Path) -> Path:
    """Those of the plugin for lines, which also finds its modules."""
    text = (REMOTE / "fixtures/test.yaml").read_text()
    paths = os.pathsep.join(path for path in sys.path if path)
    (tmp_path / "test.yaml").write_text(f"{text}environment: {{PYTHONPATH: {json.dumps(paths)}}}\n")
    return tmp_path


def hold(program: str, folder: Path, *options: str, fault: str = "") -> Result:
    command = (sys.executable, str(REMOTE / program), *filter(None, [fault]))
    return CliRunner().invoke(cli, ["plugin", "test", "--fixtures", str(folder), *options, "--", *command])


def test_a_good_plugin_keeps_the_rules(fixtures: Path) -> None:
    done = hold("line_plugin.py", fixtures, "--rule", "push_converges", "--rule", "diff_never_writes")
    assert done.exit_code == 0, done.output
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["ok", "push_converges"],
        ["ok", "diff_never_writes"],
        ["2", "rules"],
    ]


def test_a_broken_rule_is_described_with_the_log_of_the_plugin(fixtures: Path) -> None:
    options = ("--rule", "diff_can_be_repeated", "--rule", "discover_never_writes")
    done = hold("faulty_plugin.py", fixtures, *options, "-o", "json", fault="dies")
    assert done.exit_code == 1
    for broken, rule in zip(json.loads(done.stdout), options[1::2], strict=True):
        assert broken["rule"] == rule
        assert "has ended" in broken["broken"]
        assert broken["log"][-1] == "out of paper"
    shown = hold("faulty_plugin.py", fixtures, *options, fault="dies").stdout
    assert "broken  diff_can_be_repeated" in shown
    assert "        | out of paper" in shown


def test_bad_input_is_named(fixtures: Path) -> None:
    unknown = hold("line_plugin.py", fixtures, "--rule", "no_such_rule")
    assert unknown.exit_code == 1
    assert "there is no rule 'no_such_rule'" in str(unknown.exception)
    (fixtures / "test.yaml").write_text("asset: {id: a}\ndisturb: 7\nextra: 1\n")
    refused = hold("line_plugin.py", fixtures)
    assert refused.exit_code == 1
    for problem in ("type", "payload", "changed", "disturb", "extra"):
        assert problem in refused.output, problem
