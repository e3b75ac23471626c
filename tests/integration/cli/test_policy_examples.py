"""`lehr test` tries the examples of policies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.base.errors import LehrError
from lehr.cli.test import test as command

SHIPPED = sorted(
    (Path(__file__).resolve().parents[3] / "examples" / "policies").glob("assets/policies/*.yaml")
)

POLICY = """\
id: policies/modes
type: lehr.Policy
payload:
  match: {select: {types: [lehr.File]}}
  rules:
    - name: private
      require: payload.mode == '0600'
      message: "{{ payload.path }} has mode {{ payload.mode }}"
    - name: few
      require_of_all: size(assets) < 3
      message: "{{ size(assets) }} files"
  tests:
    - name: good
      assets:
        - {id: a, type: lehr.File, payload: {path: a, content: x, mode: "0600"}}
    - name: bad
      assets:
        - {id: a, type: lehr.File, payload: {path: a, content: x}}
      breaks: [private]
"""
MORE = """\
    - name: many
      assets:
        - {id: a, type: lehr.File, payload: {path: a, content: x, mode: "0600"}}
        - {id: b, type: lehr.File, payload: {path: b, content: x, mode: "0600"}}
        - {id: c, type: lehr.File, payload: {path: c, content: x, mode: "0600"}}
      breaks: [few]
"""


def lehr_test(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, [str(path), *arguments])


def written(folder: Path, text: str) -> Path:
    path = folder / "policies.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_policy_that_ships_has_good_and_bad_examples(path: Path) -> None:
    result = lehr_test(path)
    assert result.exit_code == 0, result.output
    assert "failed\n" in result.stderr  # how many did, which is none
    assert "no example breaks" not in result.stderr
    trials = json.loads(lehr_test(path, "-o", "json").stdout)
    assert any(not trial["expected"] for trial in trials)


def test_there_are_policies_to_copy_from() -> None:
    assert len(SHIPPED) == 7


def test_examples_that_come_out_as_they_say_pass(tmp_path: Path) -> None:
    result = lehr_test(written(tmp_path, POLICY + MORE))
    assert result.exit_code == 0, result.output
    assert result.stdout.count("passed") == 3
    assert result.stderr == "3 examples of 1 policy, 0 failed\n"


def test_a_rule_that_no_example_breaks_is_told(tmp_path: Path) -> None:
    result = lehr_test(written(tmp_path, POLICY))
    assert result.exit_code == 0
    assert "warning: no example breaks the rule `few` of `policies/modes`" in result.stderr


def test_every_example_that_comes_out_otherwise_is_told_with_its_place(tmp_path: Path) -> None:
    path = written(
        tmp_path, POLICY.replace("breaks: [private]", "breaks: [few]").replace('mode: "0600"', "mode: '0644'")
    )
    result = lehr_test(path)
    assert result.exit_code == 1
    assert result.stdout.count("failed") == 2
    assert "the example `good` of `policies/modes` breaks `private`, not no rule" in result.stderr
    assert "the example `bad` of `policies/modes` breaks `private`, not `few`" in result.stderr
    assert "found: a has mode 0644" in result.stderr
    assert f"{path}:13:7" in result.stderr
    assert f"{path}:16:7" in result.stderr


def test_an_example_in_which_something_has_no_answer_fails(tmp_path: Path) -> None:
    result = lehr_test(written(tmp_path, POLICY.replace("payload.mode == '0600'", "payload.colour == 'red'")))
    assert result.exit_code == 1
    assert "`private` has no answer in the example `bad`" in result.stderr
    assert "colour" in result.stderr


def test_an_asset_of_an_example_that_is_none_is_told_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, POLICY.replace("content: x}", "contents: x}"))
    result = lehr_test(path)
    assert result.exit_code == 1
    assert "contents" in result.stderr
    assert f"{path}:18:" in result.stderr


def test_a_policy_that_cannot_be_understood_is_not_tried(tmp_path: Path) -> None:
    path = written(tmp_path, POLICY.replace("size(assets) < 3", "size(assets) <"))
    result = lehr_test(path)
    assert result.exit_code == 1
    assert "VAL062" in result.stderr
    assert f"{path}:10:7" in result.stderr
    assert result.stdout == ""


def test_a_workspace_knows_its_own_types_and_what_breaks_there_keeps_no_example_from_being_tried(
    tmp_path: Path,
) -> None:
    files = {
        "lehr.yaml": "partition: shop\n",
        "types/note.yaml": "name: shop.Note\nschema: {type: object, properties: {mode: {type: string}}}\n",
        "assets/policies.yaml": POLICY.replace("lehr.File", "shop.Note")
        .replace("path: a, content: x, ", "")
        .replace("path: a, content: x", "mode: ''")
        .replace("{{ payload.path }} has", "it has"),
        "assets/notes.yaml": "{id: n, type: shop.Note, payload: {mode: open}}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    result = lehr_test(tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("passed") == 2


def test_no_policy_at_all_is_an_error(tmp_path: Path) -> None:
    result = lehr_test(written(tmp_path, "[]\n"))
    assert isinstance(result.exception, LehrError)
    assert "declares no policy" in result.exception.what
