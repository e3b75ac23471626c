"""`lehr select`: a question in a file, an answer for people or programs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.cli.main import cli

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "choose-what-is-updated-next.md"


def lehr(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
    done = CliRunner().invoke(cli, arguments, input=stdin)
    assert done.exit_code == code, done.output
    return done


def test_the_how_to_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [question] = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    shown, _ = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    command, _, answer = shown.partition("\n")
    assert command == "$ lehr select question.yaml"
    Path("question.yaml").write_text(question)
    assert lehr("select", "question.yaml").stdout == answer


def test_programs_ask_and_are_answered_in_json() -> None:
    question = {"units": [{"id": "b"}, {"id": "a"}], "selection": {"waves": [{"units": 1}, {}]}}
    answer = json.loads(lehr("select", "-", "-o", "json", stdin=json.dumps(question)).stdout)
    assert answer["update"] == ["a"]
    assert answer["others"] == {"b": "it is in wave 2, and wave 1 is under way"}
    assert (answer["wave"], answer["waves"], answer["done"], answer["ask_again_at"]) == (1, 2, False, None)


def test_all_problems_are_reported_at_once_with_their_places(tmp_path: Path) -> None:
    file = tmp_path / "question.yaml"
    file.write_text(
        "selection: {order: labels.size}\nunits:\n  - {id: a}\n  - {id: a}\n  - {id: b, validated_at: 3}\n"
    )
    done = lehr("select", str(file), "-o", "json", code=2)
    problems = json.loads(done.stderr)
    assert sorted((item["code"], item["at"]["line"]) for item in problems) == [
        ("ROL001", 3),
        ("ROL001", 4),
        ("ROL001", 5),
        ("ROL002", 1),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "units: {}",
        "units: []\nselection: {waves: []}",
        "units: []\nselection: {at_most: 0}",
        "units: []\nselection: {waves: [{units: ten}]}",
        "units: [{id: ''}]",
        "units: [{id: a, labels: {stage: 1}}]",
        "units: [{id: a, exposure_seconds: -1}]",
        "units: []\nsoak: 3",
    ],
)
def test_an_unusable_question_is_refused(text: str) -> None:
    done = lehr("select", "-", code=2, stdin=text)
    assert "error[ROL001]" in done.stderr
    assert done.stdout == ""


def test_a_file_that_is_not_there_is_named() -> None:
    assert "nowhere.yaml cannot be read" in lehr("select", "nowhere.yaml", code=2).stderr
