"""`lehr test` tries the examples of policies."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.base.errors import LehrError
from lehr.cli.test import test as command
from lehr.cli.working_tree import look_at
from lehr.model.asset import AssetId

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
    assert "no example" not in result.stderr
    trials = json.loads(lehr_test(path, "-o", "json").stdout)
    assert any(not trial["expected"] for trial in trials)


def test_there_are_policies_to_copy_from() -> None:
    assert len(SHIPPED) == 13
    listed = (SHIPPED[0].parents[2] / "README.md").read_text()
    assert [path.name for path in SHIPPED if f"`{path.name}`" not in listed] == []


SHOP = """\
- id: web
  type: lehr.Process
  payload:
    {command: [web], ports: [{name: http, base: 8080}], health_url: "http://127.0.0.1:{port}/", version: "1"}
  addons:
    lehr.Owner: {team: shop, contact: "#shop"}
    lehr.Labels: {labels: {env: production, critical: "true"}}
- {id: key, type: lehr.File, payload: {path: site.key, content_secret: {secret: "env:KEY"}, mode: "0640"}}
"""


def test_all_that_ship_go_together(tmp_path: Path) -> None:
    (tmp_path / "lehr.yaml").write_text("partition: shop\n")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets/shop.yaml").write_text(SHOP)
    for path in SHIPPED:
        (tmp_path / "assets" / path.name).write_text(path.read_text())
    tree = asyncio.run(look_at(tmp_path, None))
    assert tree.diagnostics == ()
    web, key = (tree.assets[AssetId(id)].document() for id in ("web", "key"))
    assert (web["payload"]["replicas"], web["payload"]["stop_timeout_seconds"]) == (2, 30.0)
    assert web["addons"]["lehr.Labels"]["labels"]["team"] == "shop"
    assert key["payload"]["mode"] == "0600"
    made = {str(id) for id, asset in tree.assets.items() if asset.made_by is not None}
    assert made == {"web/careful", "web/note"}


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
    assert (
        "the example `good` of `policies/modes` should break no rule, but breaks `private`" in result.stderr
    )
    assert "the example `bad` of `policies/modes` should break `few`, but breaks `private`" in result.stderr
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
    assert result.exception.code == "CLI159"


CHANGING = """\
id: policies/replicas
type: lehr.Policy
payload:
  match: {select: {types: [lehr.Process]}}
  mutate:
    - name: two
      default: {payload: {replicas: 2}}
    - name: stop
      set: {payload: {stop_timeout_seconds: "{{ payload.replicas * 5.0 }}"}}
  generate:
    - name: note
      asset:
        id: "{{ id }}/note"
        type: lehr.File
        payload: {path: "notes/{{ id }}", content: "{{ payload.replicas }} replicas"}
  tests:
    - name: nothing is said
      assets: [{id: web, type: lehr.Process, payload: {command: [w]}}]
      becomes: [{id: web, type: lehr.Process, payload: {command: [w], replicas: 2, stop_timeout_seconds: 10}}]
      generates: [{id: web/note, type: lehr.File, payload: {path: notes/web, content: 2 replicas}}]
    - name: one is said
      assets: [{id: web, type: lehr.Process, payload: {command: [w], replicas: 1}}]
      becomes: [{id: web, type: lehr.Process, payload: {command: [w], replicas: 1, stop_timeout_seconds: 5}}]
      generates: [{id: web/note, type: lehr.File, payload: {path: notes/web, content: 1 replicas}}]
"""


def test_what_a_policy_changes_and_makes_is_compared_with_what_its_examples_say(tmp_path: Path) -> None:
    path = written(tmp_path, CHANGING.replace("payload.replicas * 5.0", "double(payload.replicas) * 5.0"))
    result = lehr_test(path)
    assert result.exit_code == 0, result.output
    assert result.stderr == "2 examples of 1 policy, 0 failed\n"
    trials = json.loads(lehr_test(path, "-o", "json").stdout)
    assert [trial["effects"] for trial in trials] == [["note", "stop", "two"], ["note", "stop"]]


def test_every_asset_that_comes_out_otherwise_is_told_with_what_differs(tmp_path: Path) -> None:
    text = CHANGING.replace("payload.replicas * 5.0", "double(payload.replicas) * 5.0")
    text = text.replace("replicas: 2, stop", "replicas: 3, stop").replace(
        "content: 1 replicas", "content: one"
    )
    path = written(tmp_path, text)
    result = lehr_test(path)
    assert result.exit_code == 1
    assert result.stdout.count("failed") == 2
    assert (
        "the result for `web` does not match the example `nothing is said` of `policies/replicas`"
        in result.stderr
    )
    assert "`/payload/replicas` is 2, but should be 3" in result.stderr
    assert f"{path}:19:7" in result.stderr or f"{path}:19:17" in result.stderr
    assert '`/payload/content` is "1 replicas", but should be "one"' in result.stderr
    trials = json.loads(lehr_test(path, "-o", "json").stdout)
    (difference,) = trials[0]["differences"]
    assert (difference["asset"], difference["part"]) == ("web", "becomes")


def test_what_an_example_does_not_tell_of_fails_too(tmp_path: Path) -> None:
    text = CHANGING.replace("payload.replicas * 5.0", "double(payload.replicas) * 5.0")
    lines = [line for line in text.splitlines() if "becomes" not in line and "generates" not in line]
    result = lehr_test(written(tmp_path, "\n".join(lines) + "\n"))
    assert result.exit_code == 1
    assert "it is changed, but `becomes` does not list it" in result.stderr
    assert "it is generated, but `generates` does not list it" in result.stderr
    more = text.replace("becomes: [", "becomes: [{id: db, type: lehr.Process, payload: {command: [x]}}, ")
    more = more.replace(
        "generates: [", "generates: [{id: n, type: lehr.File, payload: {path: n, content: n}}, "
    )
    result = lehr_test(written(tmp_path, more))
    assert "the result for `db` does not match the example `one is said`" in result.stderr
    assert "it is not listed in `assets` of the example" in result.stderr
    assert "it is not generated" in result.stderr


def test_what_no_example_shows_to_do_anything_is_told(tmp_path: Path) -> None:
    text = CHANGING.replace("payload.replicas * 5.0", "double(payload.replicas) * 5.0")
    result = lehr_test(
        written(
            tmp_path, text[: text.index("    - name: nothing")] + text[text.index("    - name: one is") :]
        )
    )
    assert result.exit_code == 0, result.output
    assert "warning: no example is changed by `two` of `policies/replicas`" in result.stderr


def test_a_policy_that_cannot_do_what_it_says_is_told_without_any_asset(tmp_path: Path) -> None:
    match, kind = "{select: {types: [lehr.Process]}}", "type: lehr.File"
    for wrong, code in (
        (CHANGING.replace(match, "{select: {all: true}}"), "GEN031"),
        (CHANGING.replace(kind, "type: lehr.Fil", 1), "GEN005"),
        (CHANGING.replace("payload.replicas }} r", "payload. }} r"), "VAL062"),
    ):
        result = lehr_test(written(tmp_path, wrong))
        assert result.exit_code == 1
        assert code in result.stderr
        assert result.stdout == ""


def test_an_example_in_which_a_change_goes_wrong_fails(tmp_path: Path) -> None:
    result = lehr_test(written(tmp_path, CHANGING))  # an int times a double
    assert result.exit_code == 1
    assert result.stdout.count("failed") == 2
    assert "GEN040" in result.stderr
