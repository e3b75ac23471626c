"""Types that Python files of a workspace declare: read in the sandbox, kept as data."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.diagnostics import errors
from lehr.generate.engine.client import GenerationWorker
from lehr.model.declared import TYPE
from lehr.sdk.generation import Generated
from lehr.testing.sim.generation import InlineGeneration
from lehr.testing.sim.source import files
from lehr.testing.world import registry

TEAM = """\
from typing import Annotated

import msgspec

from _common import Contact
from lehr.sdk.types import External, Reference, Secret, addon_type, asset_type


@asset_type("shop.Team")
class Team(msgspec.Struct, frozen=True):
    '''People who answer.

    Attributes:
        contact: how they are reached.
    '''

    contact: Contact
    parent: Annotated[str, Reference(("shop.Team",))] | None = None
    weights: dict[Annotated[str, Reference(goes_first=True)], int] = {}
    rota: External | None = None
    pager: Secret | None = None


@addon_type("shop.OnCall")
class OnCall(msgspec.Struct, frozen=True):
    '''Who answers for this asset.'''

    team: Annotated[str, Reference(("shop.Team",))]
    level: Annotated[int, msgspec.Meta(ge=1, le=3)] = 3
"""
COMMON = """\
import msgspec


class Contact(msgspec.Struct, frozen=True):
    mail: str
    hours: str = "09:00"
"""
CORE = """\
id: core
type: shop.Team
payload: {contact: {mail: x@y}, parent: core}
addons: {shop.OnCall: {team: core}}
"""
STRUCT = "@asset_type('a.B')\nclass B(msgspec.Struct, frozen=True):\n"


class Workspace:
    """A workspace in memory, and a generation that remembers what it has built of it."""

    def __init__(self, **contents: str) -> None:
        self.registry = registry()
        self.contents = {
            "lehr.yaml": 'partition: test\ntypes: ["types/*.{py,yaml}"]\n',
            "types/team.py": TEAM,
            "types/_common.py": COMMON,
            "assets/core.yaml": CORE,
        }
        self.contents.update(contents)
        self._generation = InlineGeneration(self.registry, SystemClock())

    def build(self) -> Generated:
        encoded = {path: text.encode() for path, text in self.contents.items() if text}
        step = self._generation.generate(files(encoded))
        try:
            step.send(None)
        except StopIteration as stop:
            answer: Generated = stop.value
            return answer
        raise AssertionError("an inline generation waits for nothing")


def told(found: Generated) -> list[tuple[str, str]]:
    return [(item.code, str(item.at)) for item in errors(found.diagnostics)]


def document(found: Generated, id: str) -> Any:
    [asset] = [asset for asset in found.assets.values() if asset.id == id]
    return asset.document()


def test_a_class_is_a_type_and_its_defaults_are_spelt_out_however_deep() -> None:
    found = Workspace().build()
    assert told(found) == []
    assert found.types == ("shop.OnCall", "shop.Team")
    assert {asset.type for asset in found.assets.values()} == {TYPE, "shop.Team"}
    core = document(found, "core")
    assert core["payload"] == {
        "contact": {"mail": "x@y", "hours": "09:00"},
        "parent": "core",
        "weights": {},
        "rota": None,
        "pager": None,
    }
    assert core["addons"] == {"shop.OnCall": {"team": "core", "level": 3}}


def test_what_its_annotations_say_is_kept_as_data() -> None:
    found = document(Workspace().build(), "type/shop.Team")["payload"]
    assert found["references"] == {
        "/parent": {"types": ["shop.Team"], "goes_first": False},
        "/weights/#": {"types": [], "goes_first": True},
    }
    assert (found["externals"], found["secrets"]) == (["/rota"], ["/pager"])
    assert found["description"] == "People who answer."


def test_references_are_found_in_payload_and_addon() -> None:
    workspace = Workspace()
    workspace.contents["assets/core.yaml"] = CORE.replace("parent: core", "weights: {a: 1}")
    found = workspace.build()
    [core] = [asset for asset in found.assets.values() if asset.id == "core"]
    assert [(item.path, item.target) for item in workspace.registry.mentions(core)] == [
        ("/payload/weights/a", "a"),
        ("/addons/shop.OnCall/team", "core"),
    ]


def test_every_misfit_is_told_with_its_place_unknown_fields_too() -> None:
    broken = """\
id: core
type: shop.Team
payload:
  contact:
    mail: 5
    phone: x
  pager: hunter2
addons:
  shop.OnCall:
    level: 9
"""
    assert sorted(told(Workspace(**{"assets/core.yaml": broken}).build())) == [
        ("GEN007", "assets/core.yaml:10:5"),
        ("GEN007", "assets/core.yaml:5:5"),
        ("GEN007", "assets/core.yaml:6:5"),
        ("GEN007", "assets/core.yaml:9:3"),
        ("GEN016", "assets/core.yaml:7:3"),
    ]


def test_a_changed_module_judges_every_asset_anew_also_one_that_is_only_imported() -> None:
    workspace = Workspace()
    before = workspace.build()
    workspace.contents["types/_common.py"] = COMMON.replace("09:00", "08:00")
    after = workspace.build()
    assert document(after, "core")["payload"]["contact"]["hours"] == "08:00"
    assert after.generators != before.generators


@pytest.mark.parametrize(
    ("body", "place", "why"),
    [
        ("@asset_type('a.B')\nclass B: pass", "4", "frozen msgspec.Struct"),
        ("@asset_type('a.B')\ndef b(): pass", "4", "`b` is"),
        ("asset_type('a.B')(5)", "4", "`5` is"),
        ("@asset_type('a.B')\nclass B(msgspec.Struct): pass", "4", "frozen msgspec.Struct"),
        ("@asset_type('lehr.B')\nclass B(msgspec.Struct, frozen=True): pass", "4", "`lehr.`"),
        (f"{STRUCT}  x: complex", "4", "complex"),
        (f"{STRUCT}  x: AnyReference\n  y: list['B']", "4", "B may"),
        (f"{STRUCT}  def __post_init__(self): pass", "4", "`B.__post_init__`"),
    ],
)
def test_a_class_that_cannot_be_a_type_is_told_why_and_where(body: str, place: str, why: str) -> None:
    text = f"import msgspec\nfrom lehr.sdk.types import *\n\n{body}\n"
    found = Workspace(**{"types/team.py": text, "assets/core.yaml": ""}).build()
    [problem] = errors(found.diagnostics)
    assert (problem.code, str(problem.at)) == ("GEN014", f"types/team.py:{place}")
    assert why in problem.why


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1 / 0", "GEN020"),
        ("import nothing_of_the_kind", "GEN020"),
        ("x = 1", "GEN015"),
    ],
)
def test_a_module_that_declares_nothing_or_breaks_is_told(text: str, code: str) -> None:
    found = Workspace(**{"types/team.py": text, "assets/core.yaml": ""}).build()
    assert code in {item.code for item in found.diagnostics}


def test_every_decorator_declares_a_type_also_where_a_name_is_used_again() -> None:
    one = "class B(msgspec.Struct, frozen=True):\n    y: int = 1\n"
    text = "import msgspec\nfrom lehr.sdk.types import asset_type\n"
    text += f"@asset_type('a.B')\n{one}@asset_type('a.C')\n@asset_type('a.D')\n{one}C = B\n"
    found = Workspace(**{"types/a.py": text}).build()
    assert not [item for item in errors(found.diagnostics) if item.subject == "types/a.py"]
    declared = {asset.id for asset in found.assets.values() if asset.id.startswith("type/a.")}
    assert declared == {"type/a.B", "type/a.C", "type/a.D"}


def test_a_class_of_a_later_version_says_what_it_was() -> None:
    was = '[{"version": 1, "steps": [{"rename": {"/mail": "/contact/mail"}}]}]'
    text = TEAM.replace('@asset_type("shop.Team")', f'@asset_type("shop.Team", version=2, was={was})')
    found = Workspace(**{"types/team.py": text}).build()
    assert told(found) == []
    assert document(found, "core")["versions"] == {"shop.Team": 2}
    assert document(found, "type/shop.Team")["payload"]["was"][0]["steps"] == [
        {"rename": {"/mail": "/contact/mail"}}
    ]


def test_a_file_may_be_called_like_an_installed_module() -> None:
    text = f"from __future__ import annotations\n{TEAM}"
    found = Workspace(**{"types/team.py": "", "types/queue.py": text}).build()
    assert told(found) == []
    assert found.types == ("shop.OnCall", "shop.Team")


def test_what_is_nested_without_end_is_refused() -> None:
    made = """
from lehr.sdk.generator import asset, for_each_file

@for_each_file("deep/*.txt")
def deep(file):
    value = {}
    for _ in range(600):
        value = {"children": [value]}
    yield asset("deep", "shop.Tree", value)
"""
    tree = """
import msgspec
from lehr.sdk.types import asset_type

@asset_type("shop.Tree")
class Tree(msgspec.Struct, frozen=True):
    children: "list[Tree]" = []
"""
    contents = {"generators/deep.py": made, "deep/x.txt": "x", "types/tree.py": tree}
    found = Workspace(**contents).build()
    assert {code for code, _at in told(found)} <= {"GEN007", "GEN027"}
    assert told(found)


def test_generators_may_build_payloads_of_the_classes_that_types_are() -> None:
    made = """
from _common import Contact
from team import Team
from lehr.sdk.generator import asset, for_each_file

@for_each_file("mails/*.txt")
def teams(file):
    yield asset("red", "shop.Team", Team(Contact(file.text())))
"""
    contents = {"generators/teams.py": made, "mails/red.txt": "red@shop"}
    workspace = Workspace(**contents)
    assert document(workspace.build(), "red")["payload"]["contact"]["mail"] == "red@shop"
    found = in_a_worker(workspace.contents)
    assert told(found) == []
    assert [item.code for item in found.diagnostics] == []
    assert document(found, "red")["payload"]["contact"] == {"mail": "red@shop", "hours": "09:00"}


def in_a_worker(contents: dict[str, str]) -> Generated:
    """What a real worker makes of it, sandbox and all."""

    async def main() -> Generated:
        worker = GenerationWorker("lehr.testing.world:registry", Inline())
        try:
            made = await worker.generate(files({path: text.encode() for path, text in contents.items()}))
            return msgspec.structs.replace(made, assets=dict(made.assets))
        finally:
            await worker.close()

    return asyncio.run(main())


def test_a_module_is_run_in_the_sandbox_and_never_here() -> None:
    found = in_a_worker(Workspace().contents)
    assert told(found) == []
    assert document(found, "core")["payload"]["contact"] == {"mail": "x@y", "hours": "09:00"}
    assert not {"team", "_common"} & sys.modules.keys()


def test_a_module_that_asks_for_what_it_may_not_have_is_told_the_line() -> None:
    contents = Workspace(
        **{"types/team.py": "x = 1\nopen('/etc/hostname')\n", "assets/core.yaml": ""}
    ).contents
    assert told(in_a_worker(contents)) == [("GEN023", "types/team.py:2")]
