"""`lehr plugin test`: the rules of asset plugins, for programs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.cli.main import cli
from lehr.testing.conformance.validator import RULES

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


def test_fixtures_may_have_a_provider(tmp_path: Path) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    config = {"folder": "${PRODUCTION}/account", "token": {"secret": "env:TOKEN"}}
    found = {
        "asset": {
            "id": "x",
            "type": "example.Entry",
            "payload": {"name": "x", "text": "one"},
            "addons": {"lehr.ProvidedBy": {"provider": "accounts/a"}},
        },
        "changed": {"name": "x", "text": "two"},
        "others": [
            {
                "id": "accounts/a",
                "type": "lehr.Provider",
                "payload": {"plugin": "accounts", "config": config},
            }
        ],
        "secrets": {"env:TOKEN": "hunter22"},
        "secret": "hunter22",
        "prepare": "mkdir account && printf hunter22 > account/.token",
        "disturb": "echo edited > account/x",
        "environment": {"PYTHONPATH": paths, "OWN_FOLDER": "/nowhere"},
        "interruptions": 2,
    }
    (tmp_path / "test.yaml").write_text(json.dumps(found))
    rules = (
        "push_converges",
        "disturbance_is_seen_and_healed",
        "secrets_are_not_shown",
        "intent_comes_through_the_reader",
        "many_diffs_are_those_of_one_by_one",
    )
    done = hold("account_plugin.py", tmp_path, *(word for rule in rules for word in ("--rule", rule)))
    assert done.exit_code == 0, done.output + str(done.exception)
    assert done.stdout.count("ok ") == len(rules)


def test_bad_input_is_named(fixtures: Path) -> None:
    unknown = hold("line_plugin.py", fixtures, "--rule", "no_such_rule")
    assert unknown.exit_code == 1
    assert "there is no rule 'no_such_rule'" in str(unknown.exception)
    (fixtures / "test.yaml").write_text("asset: {id: a}\ndisturb: 7\nextra: 1\n")
    refused = hold("line_plugin.py", fixtures)
    assert refused.exit_code == 1
    for problem in ("type", "payload", "changed", "disturb", "extra"):
        assert problem in refused.output, problem


def cases(folder: Path, *found: dict[str, object]) -> Path:
    """A folder with nothing but cases for checks."""
    paths = os.pathsep.join(path for path in sys.path if path)
    (folder / "checks.yaml").write_text(json.dumps({"cases": found, "environment": {"PYTHONPATH": paths}}))
    return folder


def case(**changes: object) -> dict[str, object]:
    web = {"id": "web", "type": "shop.Site", "payload": {}}
    rota = {"id": "rota", "type": "example.OnCall", "payload": {"people": []}}
    usual = {"name": "nobody", "check": "on-call", "asset": web, "governing": [rota], "allows": False}
    return {**usual, **changes}


def test_checks_are_held_to_their_rules(tmp_path: Path) -> None:
    folder = cases(tmp_path, case(), case(name="ungoverned", governing=[], allows=None))
    done = hold("check_plugin.py", folder, "--rule", "answers_as_expected", "--rule", "can_be_repeated")
    assert done.exit_code == 0, done.output
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["ok", "on-call/answers_as_expected"],
        ["ok", "on-call/can_be_repeated"],
        ["2", "rules"],
    ]


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("dies", "answers_as_expected"),
        ("other-answer", "answers_as_expected"),
        ("always-allows", "no_answer_is_no_permission"),
        ("counts", "can_be_repeated"),
        ("remembers", "is_governed_by_the_governing_incarnation"),
    ],
)
def test_a_check_that_breaks_a_rule_is_found(tmp_path: Path, fault: str, rule: str) -> None:
    allows = fault not in ("always-allows", "counts", "remembers")
    folder = cases(tmp_path, case(allows=None if allows else True))
    done = hold("check_plugin.py", folder, "--rule", rule, fault=fault)
    assert done.exit_code == 1, done.output
    assert f"broken  on-call/{rule}" in done.stdout
    assert "Broken:   nobody: " in done.stdout


def test_a_check_that_the_plugin_does_not_answer_is_named(tmp_path: Path) -> None:
    done = hold("check_plugin.py", cases(tmp_path, case(check="nightly")))
    assert "the plugin does not answer the check nightly" in str(done.exception)


def changes(folder: Path, *found: dict[str, object], **more: object) -> Path:
    """A folder with nothing but cases for validators."""
    paths = os.pathsep.join(path for path in sys.path if path)
    content = {"cases": found, "environment": {"PYTHONPATH": paths}, **more}
    (folder / "validators.yaml").write_text(json.dumps(content))
    return folder


def change(**changed: object) -> dict[str, object]:
    site = {"name": "Web", "owner": "mira", "host": "h1"}
    web = {"id": "web", "type": "shop.Site", "payload": site}
    problem = {"code": "N001", "asset": "web", "pointer": "/payload/name"}
    usual = {"name": "capitals", "validator": "naming", "changes": [{"after": web}], "problems": [problem]}
    return {**usual, **changed}


def test_validators_are_held_to_their_rules(tmp_path: Path) -> None:
    payload = {"name": "web", "host": "h1"}
    site: dict[str, object] = {"id": "web", "type": "shop.Site", "payload": payload}
    host = {"id": "h1", "type": "shop.Host", "payload": {}}
    unowned = change(
        name="unowned",
        changes=[{"before": site, "after": {**site, "payload": {**payload, "name": "blog"}}}],
        problems=[{"code": "N002", "asset": "web", "severity": "warning"}],
    )
    there = change(name="there", validator="hosts", changes=[{"after": site}], others=[host], problems=[])
    removed = change(
        name="removed",
        validator="hosts",
        changes=[{"before": host}],
        others=[site],
        problems=[
            {"code": "H002", "asset": "web", "pointer": "/payload/host"},
            {"code": "H003", "asset": "h1"},
        ],
    )
    folder = changes(tmp_path, change(), unowned, there, removed, references={"shop.Site": ["/host"]})
    done = hold("validator_plugin.py", folder)
    assert done.exit_code == 0, done.output
    ruled = [line.split()[:2] for line in done.stdout.splitlines()[:-1]]
    assert ruled == [["ok", f"{name}/{rule.__name__}"] for name in ("naming", "hosts") for rule in RULES]


@pytest.mark.parametrize(
    ("fault", "rule", "problem"),
    [
        ("dies", "finds_what_is_expected", "it has no answer"),
        (
            "missing",
            "finds_what_is_expected",
            "it does not find error N001 of web/payload/name; it finds nothing",
        ),
        ("other", "finds_what_is_expected", "it also finds error N001 of web/payload/name"),
        ("unset-severity", "problems_are_explained", "N001 has no fix"),
        ("remembers", "findings_can_be_repeated", "it finds"),
        ("first", "order_does_not_matter", "in reverse order"),
        ("counting", "changes_can_be_divided", "one at a time"),
    ],
)
def test_a_validator_that_breaks_a_rule_is_found(tmp_path: Path, fault: str, rule: str, problem: str) -> None:
    def named(id: str, name: str) -> dict[str, object]:
        return {"after": {"id": id, "type": "shop.Site", "payload": {"name": name, "owner": "mira"}}}

    case = {
        "missing": change(changes=[named("web", "web")]),
        "other": change(problems=[]),
        "first": change(validator="first", changes=[named("web", "web"), named("blog", "blog")]),
        "counting": change(validator="counting", changes=[named("web", "web"), named("blog", "blog")]),
    }.get(fault, change())
    folder = changes(tmp_path, case)
    done = hold("validator_plugin.py", folder, "--rule", rule, fault=fault)
    assert done.exit_code == 1, done.output
    assert f"broken  {case['validator']}/{rule}" in done.stdout
    assert "Broken:   capitals: " in done.stdout
    assert problem in done.stdout


def test_cases_of_validators_are_checked(tmp_path: Path) -> None:
    done = hold("validator_plugin.py", changes(tmp_path, change(validator="nightly")))
    assert "the plugin does not answer the validator nightly" in str(done.exception)
    other = {"id": "b", "type": "x.Y", "payload": {}}
    web = {"id": "a", "type": "x.Y", "payload": {}}
    for wrong in ({"before": web, "after": other}, {}):
        refused = hold("validator_plugin.py", changes(tmp_path, change(changes=[wrong])))
        assert refused.exit_code == 1
        assert "are one asset" in refused.output
