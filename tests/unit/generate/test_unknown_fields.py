"""A field that a type does not have is named at its own line, with the one that was meant."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from lehr.base import documents
from lehr.base.diagnostics import Diagnostic, Position
from lehr.generate.typing.conversion import convert
from lehr.generate.typing.problems import problems_of
from lehr.model.types import Schema
from lehr.wiring import registry

YAML = """\
id: web
type: lehr.Process
payload:
  comand: [sleep]
  ports:
    - name: http
      base: 8080
      bsae: 8080
addons:
  lehr.Turndown:
    reason: x
    resson: x
"""
JSON = """\
{"id": "web", "type": "lehr.Process",
 "payload": {
  "comand": ["sleep"],
  "ports": [{"name": "http", "base": 1,
    "bsae": 2}]
 },
 "addons": {"lehr.Turndown": {"reason": "x",
   "resson": "x"}}}
"""
TOML = """\
id = "web"
type = "lehr.Process"
[payload]
comand = ["sleep"]
[[payload.ports]]
name = "http"
base = 1
bsae = 2
[addons."lehr.Turndown"]
reason = "x"
resson = "x"
"""


def found_in(name: str, text: str) -> list[Diagnostic]:
    [document] = documents.load(name, text.encode()).documents
    return convert(document.value, registry(), Position(name), document.position).diagnostics


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [("a.yaml", YAML, (4, 8, 12)), ("a.json", JSON, (3, 5, 8)), ("a.toml", TOML, (4, 8, 11))],
)
def test_every_unknown_field_is_named_at_its_line(name: str, text: str, lines: tuple[int, ...]) -> None:
    unknown = [item for item in found_in(name, text) if item.what.startswith("unknown field")]
    assert {(item.what, item.fix, item.at and item.at.line) for item in unknown} == {
        ("unknown field `comand` in lehr.Process", "did you mean `command`?", lines[0]),
        ("unknown field `bsae` in `ports[0]` of lehr.Process", "did you mean `base`?", lines[1]),
        ("unknown field `resson` in lehr.Turndown", "did you mean `reason`?", lines[2]),
    }


KINDS: dict[str, Any] = {name: item.payload for name, item in registry().types.items()} | dict(
    registry().addons
)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_no_shipped_type_hides_unknown_fields_behind_its_first_problem(name: str) -> None:
    kind = KINDS[name]
    if isinstance(kind, Schema) or not kind.__struct_config__.forbid_unknown_fields:
        pytest.skip("takes any field")
    found = {item.pointer for item in problems_of({"xyzzy": 1, "plugh": 2}, kind, name)}
    assert {"/xyzzy", "/plugh"} <= found


class OnlyInPython(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(pattern=r"^(?!x)[^\0]*\Z")] = ""
    pattern: str = ""
    value: int = 0


def test_a_pattern_that_only_python_understands_hides_nothing() -> None:
    found = problems_of({"nmae": "x", "valeu": 1}, OnlyInPython, "team.Thing")
    assert [(item.pointer, item.fix) for item in found] == [
        ("/nmae", "did you mean `name`?"),
        ("/valeu", "did you mean `value`?"),
    ]


def test_what_only_msgspec_says_points_to_the_field_as_well() -> None:
    class Odd(msgspec.Struct, forbid_unknown_fields=True):
        name: Annotated[str, msgspec.Meta(extra_json_schema={"minLength": "none"})] = ""

    [found] = problems_of({"nmae": "x"}, Odd, "team.Odd")
    assert (found.pointer, found.what) == ("/nmae", "unknown field `nmae` in team.Odd")
