"""Types that a workspace declares: first the type, then its use; one that is broken is told where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic, errors
from lehr.model.declared import TYPE
from lehr.sdk.generation import Generated
from lehr.testing.sim.generation import InlineGeneration
from lehr.testing.sim.source import files
from lehr.testing.world import registry

TEAM = """\
name: shop.Team
description: People who answer.
schema:
  type: object
  required: [mail]
  additionalProperties: false
  properties:
    mail: {type: string}
    pager: {type: boolean, default: false}
    hours: {type: object, properties: {from: {type: string, default: "09:00"}}, default: {}}
    members: {type: array, items: {type: object, properties: {lead: {type: string}}}}
references:
  /members/*/lead: {types: [shop.Team]}
"""
CORE = "{id: core, type: shop.Team, payload: {mail: x@y}}"


class Workspace:
    """A workspace in memory, and a generation that remembers what it has built of it."""

    def __init__(self, **contents: str) -> None:
        self.registry = registry()
        self.contents = {"lehr.yaml": "partition: test\n", "types/team.yaml": TEAM, "assets/core.yaml": CORE}
        self.contents.update(contents)
        self._generation = InlineGeneration(self.registry, SystemClock())

    async def generated(self) -> Generated:
        encoded = {path: text.encode() for path, text in self.contents.items() if text}
        return await self._generation.generate(files(encoded))

    def build(self) -> Generated:
        step = self.generated()
        try:
            step.send(None)
        except StopIteration as stop:
            answer: Generated = stop.value
            return answer
        raise AssertionError("an inline generation waits for nothing")


def told(found: Generated) -> list[tuple[str, str]]:
    return [(item.code, str(item.at)) for item in errors(found.diagnostics)]


def test_guards_may_be_for_a_declared_type_as_long_as_there_is_one() -> None:
    workspace = Workspace(**{"lehr.yaml": "partition: test\nshrink: {types: {shop.Team: {percent: 5}}}\n"})
    assert told(workspace.build()) == []
    workspace.contents |= {"types/team.yaml": "", "assets/core.yaml": ""}
    assert told(workspace.build()) == [("GEN002", "lehr.yaml:2:18")]


def payload(found: Generated, id: str) -> Any:
    [asset] = [asset for asset in found.assets.values() if asset.id == id]
    return asset.document()["payload"]


def test_a_declared_type_is_an_asset_and_assets_of_it_get_its_defaults_however_deep() -> None:
    found = Workspace().build()
    assert told(found) == []
    assert {asset.id: asset.type for asset in found.assets.values()} == {
        "type/shop.Team": TYPE,
        "core": "shop.Team",
    }
    assert payload(found, "core") == {"mail": "x@y", "pager": False, "hours": {"from": "09:00"}}
    assert found.types == ("shop.Team",)


def test_equal_intent_has_equal_bytes_whether_its_defaults_are_written_or_not() -> None:
    short, long = Workspace(), Workspace()
    long.contents["assets/core.yaml"] = (
        "{id: core, type: shop.Team, payload: {hours: {from: '09:00'}, pager: false, mail: x@y}}"
    )
    assert short.build().assets == long.build().assets


def test_every_misfit_is_told_with_its_place() -> None:
    broken = "id: core\ntype: shop.Team\npayload:\n  pager: maybe\n  mial: x\n"
    found = Workspace(**{"assets/core.yaml": broken}).build()
    assert sorted(told(found)) == [
        ("GEN007", "assets/core.yaml:3:1"),
        ("GEN007", "assets/core.yaml:4:3"),
        ("GEN007", "assets/core.yaml:5:3"),
    ]


def test_references_are_found_in_lists_and_maps_with_the_types_they_take() -> None:
    workspace = Workspace()
    workspace.contents["assets/core.yaml"] = (
        "{id: core, type: shop.Team, payload: {mail: x, members: [{lead: a}, {}, {lead: b}]}}"
    )
    [core] = [asset for asset in workspace.build().assets.values() if asset.id == "core"]
    found = [(item.path, item.target, item.types) for item in workspace.registry.mentions(core)]
    assert found == [
        ("/payload/members/0/lead", "a", ("shop.Team",)),
        ("/payload/members/2/lead", "b", ("shop.Team",)),
    ]


def test_a_changed_type_judges_every_asset_anew_and_one_that_is_gone_is_not_known() -> None:
    workspace = Workspace()
    assert told(workspace.build()) == []
    workspace.contents["types/team.yaml"] = TEAM.replace("required: [mail]", "required: [mail, pager, city]")
    assert told(workspace.build()) == [("GEN007", "assets/core.yaml:1:29")]
    workspace.contents["types/team.yaml"] = ""
    assert told(workspace.build()) == [("GEN005", "assets/core.yaml:1:12")]
    workspace.contents["types/team.yaml"] = TEAM
    assert told(workspace.build()) == []


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("schema: {}", "1:1", ""),
        ("name: team\nschema: {}", "1:1", "`team.Service`"),
        ("name: lehr.Team\nschema: {}", "1:1", "`lehr.`"),
        ("name: test.Thing\nschema: {}", "1:1", "package"),
        ("name: shop.Team\nschema: {type: text}", "2:10", '"text" is not valid'),
        ("name: shop.Team\nschema: {$ref: 'https://example.org/s'}", "2:1", "https://example.org/s"),
        ("name: shop.Team\nschema: {type: string, pattern: '('}", "2:24", "regex"),
    ],
)
def test_a_type_that_cannot_be_is_told_why_and_where(text: str, place: str, why: str) -> None:
    found = errors(Workspace(**{"types/team.yaml": text}).build().diagnostics)
    [problem] = [item for item in found if item.code == "GEN014"]
    assert str(problem.at) == f"types/team.yaml:{place}"
    assert why in problem.why


def test_a_type_that_is_not_known_is_told_with_the_type_file_that_has_errors() -> None:
    workspace = Workspace(**{"types/team.yaml": "name: shop.Team\nschema: {type: text}\n"})
    [unknown] = [item for item in errors(workspace.build().diagnostics) if item.code == "GEN005"]
    assert "types/team.yaml" in unknown.fix
    workspace.contents["types/team.yaml"] = TEAM
    assert told(workspace.build()) == []


def test_neither_an_asset_file_nor_a_generator_declares_a_type() -> None:
    asset = "{id: type/shop.Cart, type: lehr.Type, payload: {schema: {type: text}}}"
    made = """
from lehr.sdk.generator import asset, for_each_file

@for_each_file("types/team.yaml")
def carts(file):
    yield asset("type/shop.Shelf", "lehr.Type", {"schema": {}})
"""
    found = Workspace(**{"assets/core.yaml": asset, "generators/carts.py": made}).build()
    assert told(found) == [("GEN014", "assets/core.yaml:1:22"), ("GEN014", "generators/carts.py:6")]


def test_a_type_of_another_partition_is_taken_over_as_it_stands() -> None:
    before = Workspace().build()
    [declared] = [item for item in before.assets.values() if item.id == "type/shop.Team"]
    document = json.dumps(declared.document() | {"version": 1, "versions": {}})
    after = Workspace(**{"types/team.yaml": "", "types/team.json": document}).build()
    assert told(after) == []
    digests = [{item.digest for item in found.assets.values()} for found in (before, after)]
    assert digests[0] == digests[1]
    broken = document.replace('"string"', '"text"', 1)
    assert told(Workspace(**{"types/team.yaml": "", "types/team.json": broken}).build())[-1][0] == "GEN014"


def test_what_is_wrong_with_a_type_and_with_its_schema_is_told_at_once() -> None:
    text = "name: shop.Team\nowner: me\nschema:\n  type: text\n  minimum: x\n"
    found = [item for item in told(Workspace(**{"types/team.yaml": text}).build()) if "types/" in item[1]]
    assert sorted(found) == [
        ("GEN007", "types/team.yaml:2:1"),
        ("GEN014", "types/team.yaml:4:3"),
        ("GEN014", "types/team.yaml:5:3"),
    ]


@pytest.mark.parametrize(
    ("more", "code", "place"),
    [
        ("enforced: perhaps", "GEN007", "types/team.yaml:3:1"),
        ("owner: me", "GEN007", "types/team.yaml:3:1"),
        ("references: {owner: {}}", "GEN007", "types/team.yaml:3:1"),
    ],
)
def test_what_else_a_type_file_says_is_checked_in_its_own_words(more: str, code: str, place: str) -> None:
    text = f"name: shop.Team\nschema: {{}}\n{more}"
    found: list[Diagnostic] = [
        item for item in Workspace(**{"types/team.yaml": text}).build().diagnostics if item.code == code
    ]
    assert [str(item.at) for item in found if str(item.at).startswith("types/")] == [place]


def test_a_type_that_is_declared_twice_is_refused() -> None:
    found = Workspace(**{"types/again.json": json.dumps({"name": "shop.Team", "schema": {}})}).build()
    assert "GEN008" in {code for code, _place in told(found)}


def test_generators_make_assets_of_declared_types() -> None:
    made = """
from lehr.sdk.generator import asset, for_each_file

@for_each_file("mails/*.txt")
def teams(file):
    yield asset(file.path[6:-4], "shop.Team", {"mail": file.text().strip()})
"""
    workspace = Workspace(
        **{"generators/teams.py": made, "mails/red.txt": "red@shop", "assets/core.yaml": ""}
    )
    found = workspace.build()
    assert told(found) == []
    assert payload(found, "red")["pager"] is False
    workspace.contents["types/team.yaml"] = TEAM.replace("default: false", "default: true")
    assert payload(workspace.build(), "red")["pager"] is True


LATER = (
    TEAM
    + """\
version: 2
was:
- version: 1
  steps: [{rename: {/address: /mail}}]
"""
)


def test_an_asset_may_be_written_in_a_former_form_of_its_type() -> None:
    old = "{id: core, type: shop.Team, version: 1, payload: {address: x@y}}"
    written = Workspace(**{"types/team.yaml": LATER, "assets/core.yaml": old}).build()
    assert told(written) == []
    newest = Workspace(**{"types/team.yaml": LATER}).build()
    assert written.assets == newest.assets
    [core] = [asset for asset in newest.assets.values() if asset.id == "core"]
    assert core.version("shop.Team") == 2


@pytest.mark.parametrize(
    ("version", "what"),
    [
        ("3", "version 3 of shop.Team"),
        ("0", "the number 0"),
        ("two", "the string 'two'"),
    ],
)
def test_a_version_that_cannot_be_is_told(version: str, what: str) -> None:
    asset = f"id: core\ntype: shop.Team\nversion: {version}\npayload: {{mail: x}}\n"
    found = Workspace(**{"types/team.yaml": LATER, "assets/core.yaml": asset}).build()
    [problem] = errors(found.diagnostics)
    assert (problem.code, str(problem.at)) == ("GEN017", "assets/core.yaml:3:1")
    assert what in problem.what


SEEN = """\
name: shop.Seen
kind: addon
version: 2
was: [{version: 1, steps: [{rename: {/who: /by}}]}]
schema:
  additionalProperties: false
  properties: {by: {type: string}, times: {type: integer, default: 1}}
"""


def seen(addon: str, versions: str) -> Workspace:
    asset = f"id: core\ntype: shop.Team\npayload: {{mail: x@y}}\naddons: {{shop.Seen: {addon}}}\n{versions}\n"
    return Workspace(**{"types/seen.yaml": SEEN, "assets/core.yaml": asset})


def test_an_addon_may_be_written_in_a_former_form_of_its_type() -> None:
    old = seen("{who: ada}", "versions: {shop.Seen: 1}").build()
    assert told(old) == []
    assert old.assets == seen("{by: ada}", "").build().assets
    [core] = [asset for asset in old.assets.values() if asset.id == "core"]
    assert core.document()["addons"] == {"shop.Seen": {"by": "ada", "times": 1}}
    assert core.version("shop.Seen") == 2


@pytest.mark.parametrize(
    ("versions", "code", "what"),
    [
        ("versions: {shop.Seen: 3}", "GEN017", "version 3 of shop.Seen"),
        ("versions: {shop.Seen: x}", "GEN017", "the string 'x'"),
        ("versions: {shop.Sean: 1}", "GEN003", "`shop.Sean`"),
        ("versions: 1", "GEN003", "the number 1"),
    ],
)
def test_a_version_of_an_addon_that_cannot_be_is_told(versions: str, code: str, what: str) -> None:
    [problem] = errors(seen("{by: ada}", versions).build().diagnostics)
    assert problem.code == code
    assert what in problem.what
    assert problem.at is not None
    assert problem.at.line == 5


def test_a_former_version_that_cannot_be_is_told() -> None:
    found = Workspace(**{"types/team.yaml": LATER.replace("version: 1", "version: 2")}).build()
    assert ("GEN014", "types/team.yaml:16:3") in told(found)


def test_generators_may_make_former_forms_and_annotate_with_declared_addons() -> None:
    made = """
from lehr.sdk.generator import annotate, asset, for_each_file

@for_each_file("mails/*.txt")
def teams(file):
    yield asset("red", "shop.Team", {"address": file.text()}, version=1)
    yield annotate("red", "shop.Seen", {"by": "red"})
    yield asset("old", "shop.Team", {"mail": "x"}, {"shop.Seen": {"who": "red"}}, versions={"shop.Seen": 1})
"""
    addon = """\
name: shop.Seen
kind: addon
version: 2
was: [{version: 1, steps: [{rename: {/who: /by}}]}]
schema: {type: object, properties: {by: {type: string}, times: {type: integer, default: 1}}}
references: {/by: {types: [shop.Team]}}
"""
    workspace = Workspace(
        **{"types/team.yaml": LATER, "types/seen.yaml": addon, "assets/core.yaml": ""},
        **{"generators/teams.py": made, "mails/red.txt": "red@shop"},
    )
    found = workspace.build()
    assert told(found) == []
    [red] = [asset for asset in found.assets.values() if asset.id == "red"]
    assert red.document()["payload"]["mail"] == "red@shop"
    assert red.document()["addons"] == {"shop.Seen": {"by": "red", "times": 1}}
    assert red.document()["versions"] == {"shop.Seen": 2, "shop.Team": 2}
    [old] = [asset for asset in found.assets.values() if asset.id == "old"]
    assert old.document()["addons"] == red.document()["addons"]
    assert [item.path for item in workspace.registry.mentions(red)] == ["/addons/shop.Seen/by"]


def test_an_addon_is_not_enforced() -> None:
    text = "name: shop.Seen\nkind: addon\nschema: {}\nenforced: true\n"
    found = Workspace(**{"types/team.yaml": text, "assets/core.yaml": ""}).build()
    assert told(found) == [("GEN014", "types/team.yaml:4:1")]


@pytest.mark.parametrize("more", ["references: {/mial: {}}", "secrets: [/mial]", "externals: [/mial]"])
def test_a_pointer_that_marks_nothing_is_told(more: str) -> None:
    schema = "schema: {additionalProperties: false, properties: {mail: {type: string}}}"
    text = f"name: shop.Team\n{schema}\n{more}\n"
    found = errors(Workspace(**{"types/team.yaml": text, "assets/core.yaml": ""}).build().diagnostics)
    assert [(item.code, item.fix) for item in found] == [("GEN014", "did you mean `mail`?")]
    assert str(found[0].at).startswith("types/team.yaml:3:")
