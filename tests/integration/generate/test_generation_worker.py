"""Generation in a real worker process: plain files, generators good and nasty, and bad input."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from lehr.base.blocking import Inline
from lehr.base.diagnostics import Diagnostic, Position, Severity, errors
from lehr.base.errors import TransientError
from lehr.generate.engine.client import GenerationWorker
from lehr.generate.outcome.protocol import SandboxLimits
from lehr.model.asset import AssetId
from lehr.model.incarnation import Acknowledgement
from lehr.sdk.generation import Generated
from lehr.sdk.validator import Jump, NotSecret
from tests.codes import raises
from tests.snapshots import MemorySnapshot

Files = dict[str, str | bytes]

REGISTRY = "lehr.testing.samples:registry"
WORKSPACE = "partition: test\n"
IMPORTS = "from lehr.sdk.generator import *\n"
GOOD = """
@for_each_file("services/*.yaml")
def service(file):
    data = file.yaml()
    yield asset(data["name"], "sample.Service", {"command": data["command"]})
"""
ROUTES = """
@for_each_asset("sample.Service", makes="sample.Route")
def route(service):
    yield asset(f"route/{service.id}", "sample.Route", {"path": f"/{service.id}", "service": service.id})
"""


def service(id: str, command: str = "run") -> str:
    return f"id: {id}\ntype: sample.Service\npayload:\n  command: [{command}]\n"


def generate_each(snapshots: Sequence[Files], limits: SandboxLimits | None = None) -> list[Generated]:
    """What one worker makes of one snapshot after the other. `assets` are copied."""

    async def main() -> list[Generated]:
        worker = GenerationWorker(REGISTRY, Inline(), limits=limits)
        try:
            return [await _generate(worker, files) for files in snapshots]
        finally:
            await worker.close()

    return asyncio.run(main())


async def _generate(worker: GenerationWorker, files: Files) -> Generated:
    made = await worker.generate(MemorySnapshot(files))
    return Generated(
        made.revision,
        made.partition,
        made.limits,
        made.generators,
        dict(made.assets),
        made.touched,
        made.diagnostics,
    )


class Shared:
    """One worker for all tests that look at one snapshot alone; what came before must not matter."""

    runner: asyncio.Runner
    worker: GenerationWorker


@pytest.fixture(scope="module", autouse=True)
def _shared() -> Iterator[None]:
    with asyncio.Runner() as Shared.runner:
        Shared.worker = GenerationWorker(REGISTRY, Inline())
        yield
        Shared.runner.run(Shared.worker.close())


def generate(files: Files) -> Generated:
    return Shared.runner.run(_generate(Shared.worker, files))


def generated_by(code: str) -> Generated:
    """What a generator module makes of the file `services/a.yaml`, beside one plain asset."""
    return generate(
        {
            "lehr.yaml": WORKSPACE,
            "assets/plain.yaml": service("plain"),
            "services/a.yaml": "name: a\ncommand: [x]\n",
            "generators/g.py": IMPORTS + code,
        }
    )


def only(made: Generated) -> Diagnostic:
    assert len(made.diagnostics) == 1, made.diagnostics
    return made.diagnostics[0]


def codes(made: Generated) -> list[str]:
    return [item.code for item in made.diagnostics]


# --- plain asset files ------------------------------------------------------------------------


def test_plain_files_of_every_format_and_shape_declare_assets() -> None:
    made = generate(
        {
            "lehr.yaml": WORKSPACE,
            "assets/one.yaml": "# a comment\n" + service("one"),
            "assets/list.yml": "- {id: two, type: sample.Service}\n- {id: three, type: sample.Service}\n",
            "assets/deep/many.yaml": "assets:\n- {id: four, type: sample.Service}\n---\n" + service("five"),
            "assets/six.json": '{"id": "six", "type": "sample.Policy", "payload": {"text": "t"}}',
            "assets/t.toml": '[[assets]]\nid = "seven"\ntype = "sample.Service"\npayload = {replicas = 2}\n',
            "other/ignored.yaml": "nonsense: true\n",
        }
    )
    assert made.diagnostics == ()
    assert set(made.assets) == {"one", "two", "three", "four", "five", "six", "seven"}
    assert made.partition == "test"
    assert made.assets[AssetId("seven")].document()["payload"]["replicas"] == 2


def test_an_asset_knows_where_it_was_declared() -> None:
    made = generate(
        {
            "lehr.yaml": WORKSPACE,
            "assets/one.yaml": "# a comment\n---\n" + service("one"),
            "assets/list.yaml": "- id: two\n  type: sample.Service\n- id: three\n  type: sample.Service\n",
        }
    )
    places = {id: asset.origin for id, asset in made.assets.items()}
    assert places[AssetId("one")] == Position("assets/one.yaml", 3, 1)
    assert places[AssetId("three")] == Position("assets/list.yaml", 3, 3)


def test_all_problems_of_a_payload_are_listed_with_their_lines() -> None:
    text = (
        "id: a\ntype: sample.Service\npayload:\n  comand: [x]\n  replicas: -1\n  ports:\n"
        "  - {name: http, number: 0}\n  - {number: 80}\n  owner: 5\n"
    )
    made = generate({"lehr.yaml": WORKSPACE, "assets/a.yaml": text})
    found = {(item.at.line if item.at else 0, item.what) for item in made.diagnostics}
    assert {item.code for item in made.diagnostics} == {"GEN007"}
    assert [line for line, _ in sorted(found)] == [4, 5, 7, 8, 9]
    assert any("did you mean `command`" in item.fix for item in made.diagnostics)


def test_a_rule_that_only_the_type_itself_knows_is_reported_too() -> None:
    made = generate({"lehr.yaml": WORKSPACE, "assets/a.yaml": service("a", '""')})
    assert "no part of a command is empty" in only(made).what
    assert only(made).at == Position("assets/a.yaml", 3, 1)


def test_unknown_types_addons_and_fields_come_with_advice() -> None:
    text = "id: a\ntype: sample.Servce\naddon: {}\n"
    addons = "id: b\ntype: sample.Service\naddons:\n  lehr.Ownr: {team: x}\n"
    types = "id: c\ntype: sample.Servce\n"
    made = generate(
        {"lehr.yaml": WORKSPACE, "assets/a.yaml": text, "assets/b.yaml": addons, "assets/c.yaml": types}
    )
    fixes = {item.code: item.fix for item in made.diagnostics}
    assert fixes["GEN003"] == "did you mean `addons`?"
    assert fixes["GEN005"] == "did you mean `sample.Service`?"
    assert fixes["GEN006"] == "did you mean `lehr.Owner`?"


@pytest.mark.parametrize(
    "id", ["../etc", "a/../b", "/a", "a//b", "", "a b", "x" * 201, "\\u0007", "\\u001b[31m"]
)
def test_an_id_that_could_escape_is_refused(id: str) -> None:
    made = generate({"lehr.yaml": WORKSPACE, "assets/a.json": f'{{"id": "{id}", "type": "sample.Service"}}'})
    assert codes(made) == ["GEN004"]
    assert "\x1b" not in only(made).what


def test_an_id_declared_twice_names_both_places() -> None:
    made = generate(
        {
            "lehr.yaml": WORKSPACE,
            "assets/a.yaml": service("a"),
            "assets/b.yaml": "- id: a\n  type: sample.Service\n",
            "services/a.yaml": "name: a\ncommand: [x]\n",
            "generators/g.py": IMPORTS + GOOD,
        }
    )
    assert codes(made) == ["GEN008", "GEN008"]
    assert all("assets/a.yaml:1:1" in item.why for item in made.diagnostics)


def test_large_assets_warn_and_huge_ones_are_refused() -> None:
    def owner(size: int) -> str:
        return "type: sample.Service\npayload: {owner: " + "x" * size + "}\n"

    made = generate(
        {
            "lehr.yaml": WORKSPACE,
            "assets/a.yaml": "id: a\n" + owner(20_000),
            "assets/b.yaml": "id: b\n" + owner(200_000),
        }
    )
    assert [(item.code, item.severity) for item in made.diagnostics] == [
        ("GEN010", Severity.WARNING),
        ("GEN009", Severity.ERROR),
    ]


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("assets/a.yaml", ["lehr.yaml"]),
        ("types/a.yaml", ["lehr.yaml"]),
        ("generators/a.py", ["lehr.yaml"]),
        ("lehr.yaml", []),
    ],
)
def test_a_file_beyond_all_limits_is_not_even_read(path: str, read: list[str]) -> None:
    snapshot = MemorySnapshot({"lehr.yaml": WORKSPACE, path: b"x" * 10_000_001})

    async def main() -> Generated:
        worker = GenerationWorker(REGISTRY, Inline())
        try:
            return await worker.generate(snapshot)
        finally:
            await worker.close()

    made = asyncio.run(main())
    assert codes(made) == ["GEN011"]
    assert only(made).at == Position(path)
    assert snapshot.reads == read


BAD_FILES: dict[str, bytes] = {
    "binary": bytes(range(256)),
    "not UTF-8": b"id: \xff\n",
    "deep": b"[" * 10_000,
    "alias bomb": b"a: &a [x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 20)) for n in range(12)),
    "duplicate keys": b"id: a\nid: b\ntype: sample.Service\n",
    "broken": b"id: [\n",
    "a string": b"hello\n",
    "a number": b"12\n",
    "blank assets": b"assets:\n",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_an_error_that_points_to_it_and_names_a_fix(name: str) -> None:
    made = generate(
        {"lehr.yaml": WORKSPACE, "assets/good.yaml": service("good"), "assets/bad.yaml": BAD_FILES[name]}
    )
    found = errors(made.diagnostics)
    assert found
    assert all(item.at is not None and item.at.file == "assets/bad.yaml" and item.fix for item in found)


# --- the workspace file -----------------------------------------------------------------------


def test_without_a_workspace_file_the_answer_says_how_to_make_one() -> None:
    made = generate({"assets/a.yaml": service("a")})
    assert codes(made) == ["GEN001"]
    assert "lehr init" in only(made).fix
    assert made.partition is None


def test_a_workspace_file_is_checked_as_strictly_as_assets() -> None:
    made = generate({"lehr.yaml": "partition: UPPER\n"})
    assert (codes(made), only(made).at) == (["GEN002"], Position("lehr.yaml", 1, 1))
    made = generate({"lehr.yaml": "partition: p\nasets: []\nshrink: {percent: 200}\n"})
    assert [(item.code, item.at.line if item.at else 0) for item in made.diagnostics] == [
        ("GEN002", 2),
        ("GEN002", 3),
    ]
    assert any("did you mean `assets`" in item.fix for item in made.diagnostics)
    made = generate({"lehr.yaml": "partition: p\nassets: [/abs/*.yaml, 'a/{b']\nlet_go: {'a b': why}\n"})
    assert codes(made) == ["GEN002"] * 3


def test_limits_come_from_the_workspace_file() -> None:
    made = generate({"lehr.yaml": "partition: p\nlet_go: {old: moved}\nshrink: {percent: 50, floor: 1}\n"})
    assert made.limits is not None
    assert (made.limits.let_go, made.limits.shrink.percent, made.limits.shrink.floor) == (
        {"old": "moved"},
        50,
        1,
    )


def test_guards_and_acknowledgements_come_from_the_workspace_file() -> None:
    text = (
        "partition: p\nshrink: {types: {sample.Service: {floor: 9}}}\ngrowth: {percent: 300}\n"
        "blank: {floor: 3}\n"
        "jump: {factor: 2, severity: warning, ignore: [/a]}\n"
        "acknowledge: [{code: VAL021, subject: p, after: p@4, reason: why}]\n"
        "not_secret: [{asset: a, field: /payload/b, reason: why}]\n"
    )
    limits = generate({"lehr.yaml": text}).limits
    assert limits is not None
    assert limits.shrink.of("sample.Service") == (30, 9)
    assert limits.shrink.of("u") == (30, 5)
    assert (limits.growth.percent, limits.growth.floor, limits.blank.floor) == (300, 100, 3)
    assert limits.jump == Jump(2, Severity.WARNING, ("/a",))
    assert limits.acknowledge == (Acknowledgement("VAL021", "p", "p@4", "why"),)
    assert limits.not_secret == (NotSecret("a", "/payload/b", "why"),)


def test_what_guards_and_rules_are_for_has_to_be_a_type() -> None:
    rule = "{name: n, connection: 'sqlite:x', query: SELECT 1, field: /a, type: TYPE}"
    text = "partition: p\nshrink: {types: {TYPE: {percent: 5}}}\ndatabases:\n- " + rule + "\n"
    made = generate({"lehr.yaml": text.replace("TYPE", "sample.Servce")})
    assert [(item.code, item.at and item.at.line) for item in made.diagnostics] == [
        ("GEN002", 2),
        ("GEN002", 4),
    ]
    assert all("did you mean `sample.Service`?" in item.fix for item in made.diagnostics)
    assert generate({"lehr.yaml": text.replace("TYPE", "sample.Service")}).diagnostics == ()


def test_only_guards_can_be_acknowledged() -> None:
    entry = "acknowledge: [{code: CODE, subject: p, after: p@4, reason: REASON}]\n"
    for code, reason in (("VAL010", "why"), ("VAL21", "why"), ("VAL021", "''")):
        text = "partition: p\n" + entry.replace("CODE", code).replace("REASON", reason)
        made = generate({"lehr.yaml": text})
        assert (codes(made), only(made).at and only(made).at.line) == (["GEN002"], 2)  # type: ignore[union-attr]


def test_a_written_pattern_that_matches_nothing_is_a_warning() -> None:
    made = generate({"lehr.yaml": "partition: p\nassets: [asets/*.yaml]\n", "assets/a.yaml": service("a")})
    assert (codes(made), only(made).severity) == (["GEN012"], Severity.WARNING)
    assert only(made).at == Position("lehr.yaml", 2, 10)


class Linked(MemorySnapshot):
    """A snapshot with things beside its files that are not read."""

    skipped = ("assets/shared", "docs/latest", "generators/more.py", "services/b.yaml")


def test_a_link_where_files_are_looked_for_is_a_warning() -> None:
    files: Files = {"lehr.yaml": WORKSPACE, "assets/a.yaml": service("a"), "generators/g.py": IMPORTS + GOOD}
    made = Shared.runner.run(Shared.worker.generate(Linked(files)))
    assert {(item.code, item.severity) for item in made.diagnostics} == {("GEN013", Severity.WARNING)}
    assert [item.subject for item in made.diagnostics] == [
        "assets/shared",
        "generators/more.py",
        "services/b.yaml",
    ]
    assert set(made.assets) == {"a"}
    assert generate(files).diagnostics == ()


def test_a_workspace_file_that_is_a_link_is_named_as_one() -> None:
    class Empty(MemorySnapshot):
        skipped = ("lehr.yaml",)

    made = Shared.runner.run(Shared.worker.generate(Empty({"assets/a.yaml": service("a")})))
    assert sorted(codes(made)) == ["GEN001", "GEN013"]


# --- generators -------------------------------------------------------------------------------


def test_generators_make_assets_of_files_and_of_assets() -> None:
    made = generated_by(GOOD + ROUTES)
    assert made.diagnostics == ()
    assert set(made.assets) == {"plain", "a", "route/plain", "route/a"}
    assert made.assets[AssetId("a")].origin == Position("services/a.yaml")
    assert made.assets[AssetId("route/a")].origin == Position("generators/g.py", 10)


def test_generators_over_assets_run_after_those_that_make_them_whatever_their_names() -> None:
    made = generated_by(
        GOOD
        + """
@for_each_asset("sample.Route", makes=["sample.Policy"])
def a_policy(route):
    yield asset(f"policy/{route.id}", "sample.Policy", {"text": route.payload["path"]})

@for_all_assets("sample.Policy")
def summary(policies):
    for policy in policies:
        yield annotate(policy.id, "lehr.Owner", {"team": str(len(policies))})
"""
        + ROUTES
    )
    assert made.diagnostics == ()
    assert made.assets[AssetId("policy/route/a")].document()["addons"]["lehr.Owner"]["team"] == "2"


def test_a_generator_may_read_all_files_at_once_and_payload_classes() -> None:
    made = generate(
        {
            "lehr.yaml": WORKSPACE,
            "services/a.json": '["x"]',
            "services/b.toml": "c = 1\n",
            "generators/g.py": IMPORTS
            + """
from lehr.testing.samples import Service
@for_all_files("services/*")
def all_of_them(files):
    found = [files[0].json()[0], str(files[1].toml()["c"]), files[0].path]
    yield asset("all", "sample.Service", Service(found))
""",
        }
    )
    assert made.diagnostics == ()
    assert made.assets[AssetId("all")].document()["payload"]["command"] == ["x", "1", "services/a.json"]


def test_modules_beside_a_generator_can_be_imported_also_under_an_installed_name() -> None:
    made = generate(
        {
            "lehr.yaml": WORKSPACE,
            "services/a.yaml": "name: a\ncommand: [x]\n",
            "generators/_naming.py": "def name(text):\n    return 'svc/' + text\n",
            "generators/json.py": IMPORTS
            + """
import json, _naming
@for_each_file("services/*.yaml")
def service(file):
    yield asset(_naming.name(json.loads('"a"')), "sample.Service", {})
""",
        }
    )
    assert made.diagnostics == ()
    assert set(made.assets) == {"svc/a"}


def test_annotations_add_addons_and_conflicts_name_both_places() -> None:
    annotation = """
@for_each_file("services/*.yaml")
def {}(file):
    yield annotate("{}", "lehr.Owner", {{"team": "{}"}})
"""
    made = generated_by(annotation.format("f", "plain", "x"))
    assert made.assets[AssetId("plain")].document()["addons"]["lehr.Owner"]["team"] == "x"
    made = generated_by(annotation.format("f", "plain", "x") + annotation.format("g", "plain", "y"))
    assert (codes(made), only(made).at) == (["GEN033"], Position("generators/g.py", 9))
    assert "generators/g.py:5" in only(made).why
    made = generated_by(annotation.format("f", "absent", "x"))
    assert codes(made) == ["GEN032"]


@pytest.mark.parametrize(
    ("code", "expected", "line"),
    [
        ("    yield from ()\n    1 / 0", "GEN022", 5),
        ("    raise SystemExit(0)\n    yield", "GEN022", 4),
        ("    raise KeyboardInterrupt\n    yield", "GEN022", 4),
        ("    raise BaseExceptionGroup('', [KeyboardInterrupt()])\n    yield", "GEN022", 4),
        ("    raise ValueError('\\udc80')\n    yield", "GEN022", 4),
        ("    return None", "GEN027", 2),
        ("    yield {'id': 'a'}", "GEN027", 4),
        ("    yield asset('a', 'sample.Service', {'command': [object()]})", "GEN027", 4),
        ("    yield asset(12, 'sample.Service', {})", "GEN027", 4),
        ("    yield asset('a', 'sample.Service', {'command': [float('nan')]})", "GEN027", 4),
        ("    yield annotate('plain', 'sample.Note', [float('-inf')])", "GEN027", 4),
        ("    yield asset('a', 'sample.Service', {'command': [2**64]})", "GEN027", 4),
        ("    yield asset('a', 'sample.Service', {'command': 5})", "GEN007", 4),
        ("    yield asset('../a', 'sample.Service', {})", "GEN004", 4),
        ("    yield asset('a', 'sample.Nothing', {})", "GEN005", 4),
        ("    open('/etc/passwd')\n    yield", "GEN023", 4),
        ("    open('/tmp/x', 'w')\n    yield", "GEN023", 4),
        ("    import os\n    os.listdir('/')\n    yield", "GEN023", 5),
        ("    import socket\n    socket.socket()\n    yield", "GEN023", 5),
        ("    import subprocess\n    subprocess.run(['true'])\n    yield", "GEN023", 5),
        ("    import os\n    os.system('true')\n    yield", "GEN023", 5),
        ("    import os\n    os.fork()\n    yield", "GEN023", 5),
        ("    import os\n    os.execv('/bin/true', ['true'])\n    yield", "GEN023", 5),
        ("    import os\n    os.kill(os.getppid(), 9)\n    yield", "GEN023", 5),
        ("    import time\n    time.time()\n    yield", "GEN023", 5),
        ("    import time\n    time.sleep(1)\n    yield", "GEN023", 5),
        ("    import datetime\n    datetime.datetime.now()\n    yield", "GEN023", 5),
        ("    import random\n    random.random()\n    yield", "GEN023", 5),
        ("    import random\n    random.Random()\n    yield", "GEN023", 5),
        ("    import uuid\n    uuid.uuid4()\n    yield", "GEN023", 5),
        ("    import secrets\n    secrets.token_hex()\n    yield", "GEN023", 5),
        ("    import threading\n    threading.Thread(target=print).start()\n    yield", "GEN023", 5),
        ("    import os\n    os.environ['HOME']\n    yield", "GEN023", 5),
        ("    import os\n    os.environ.get('HOME', 'x')\n    yield", "GEN023", 5),
        ("    import os\n    'HOME' in os.environ\n    yield", "GEN023", 5),
        ("    import os\n    dict(os.environ)\n    yield", "GEN023", 5),
        ("    import os\n    bool(os.environ)\n    yield", "GEN023", 5),
        ("    from os import environb\n    environb.get(b'HOME')\n    yield", "GEN023", 5),
        ("    import os\n    os.getenv('HOME')\n    yield", "GEN023", 5),
        ("    import os\n    os.path.exists('services')\n    yield", "GEN023", 5),
        ("    import pathlib\n    pathlib.Path('services').exists()\n    yield", "GEN023", 5),
        ("    import platform\n    platform.system()\n    yield", "GEN023", 5),
        ("    import os\n    os.getuid()\n    yield", "GEN023", 5),
        ("    import os\n    os.getcwd()\n    yield", "GEN023", 5),
    ],
)
def test_a_generator_that_fails_is_reported_with_its_line(code: str, expected: str, line: int) -> None:
    made = generated_by(f'@for_each_file("services/*.yaml")\ndef bad(file):\n{code}\n')
    assert codes(made) == [expected], made.diagnostics
    assert only(made).at == Position("generators/g.py", line)


def test_a_generator_with_a_seed_of_its_own_is_repeatable_and_allowed() -> None:
    made = generated_by(
        """
import random, datetime
@for_each_file("services/*.yaml")
def good(file):
    day = datetime.datetime.fromisoformat("2024-01-01")
    assert isinstance(day, datetime.datetime)
    yield asset(f"n{random.Random(1).randint(0, 9)}", "sample.Service", {})
"""
    )
    assert made.diagnostics == ()


def test_libraries_may_ask_for_the_environment_and_for_files_and_find_none() -> None:
    made = generated_by(
        """
import tempfile, zoneinfo, gettext
@for_each_file("services/*.yaml")
def good(file):
    zoneinfo.reset_tzpath()
    assert gettext.find("messages") is None
    yield asset("n", "sample.Service", {})
"""
    )
    assert made.diagnostics == ()


def test_a_source_file_that_a_generator_cannot_parse_is_reported_with_its_own_line() -> None:
    made = generate(
        {"lehr.yaml": WORKSPACE, "services/a.yaml": "name: a\nname: b\n", "generators/g.py": IMPORTS + GOOD}
    )
    assert only(made).code.startswith("DOC")
    assert only(made).at == Position("services/a.yaml", 2, 1)


@pytest.mark.parametrize(
    ("code", "expected", "line"),
    [
        ("def broken(:\n", "GEN020", 2),
        ("import nothing_of_this_name\n", "GEN020", 2),
        ("1 / 0\n", "GEN020", 2),
        ("@for_each_file('a')\ndef f(file): ...\n@for_each_file('b')\ndef f(file): ...\n", "GEN020", 4),
        ("@for_each_file('a')\n@for_each_file('b')\ndef f(file): ...\n", "GEN020", 2),
        ("open('/etc/passwd')\n", "GEN023", 2),
        ("x = 1\n", "GEN021", 0),
        ("@for_each_file('*')\nclass F: ...\n", "GEN020", 2),
        ("@for_each_file('a*')\n@for_each_file('b*')\ndef f(file): ...\n", "GEN020", 2),
        ("@for_each_file('services/*')\ndef f(file, other): ...\n", "GEN022", 2),
        ("@for_each_file('/abs')\ndef f(file): ...\n", "GEN030", 2),
        ("@for_each_asset('sample.Servic')\ndef f(file): ...\n", "GEN030", 2),
        (ROUTES.replace("sample.Route", "sample.Service"), "GEN031", 3),
        (ROUTES.replace(', makes="sample.Route"', ""), "GEN029", 5),
    ],
)
def test_a_module_that_cannot_be_used_is_reported_with_its_line(code: str, expected: str, line: int) -> None:
    made = generated_by(code)
    assert codes(made) == [expected], made.diagnostics
    at = only(made).at
    assert at is not None
    assert (at.file, at.line) == ("generators/g.py", line)


SHORT = SandboxLimits(cpu_seconds=1, wall_seconds=3.0, memory_bytes=100_000_000, answer_bytes=10_000_000)

SWALLOW = """
    while True:
        try:
            while True: pass
        except BaseException: pass
"""
ENDLESS = """    n = 0
    while True:
        n += 1
        yield asset(f"a{n}", "sample.Policy", {"text": ""})
"""
GARBLE = """
    import os
    for descriptor in range(3, 4096):
        try: os.write(descriptor, b"\\0\\0\\0\\1x")
        except OSError: pass
    yield
"""


@pytest.mark.parametrize(
    ("code", "expected", "line"),
    [
        ("    while True: pass\n    yield", "GEN024", 4),
        (SWALLOW, "GEN024", None),  # wherever an interrupt finds it
        ("    import select\n    select.select([], [], [])\n    yield", "GEN024", 2),
        ("    yield asset('x' * 500_000_000, 'sample.Service', {})", "GEN025", 4),
        (
            "    for n in range(200): yield asset(f'a{n}', 'sample.Policy', {'text': 'x' * 100_000})",
            "GEN025",
            4,
        ),
        (ENDLESS, "GEN025", 7),
        ("    found = []\n    while True: found.append(object())\n    yield", "GEN025", None),
        ("    import os\n    os._exit(3)\n    yield", "GEN026", 2),
        ("    import signal\n    signal.raise_signal(9)\n    yield", "GEN026", 2),
        (GARBLE, "GEN026", 2),
    ],
)
def test_a_generator_that_must_be_ended_harms_nothing_but_itself(
    code: str, expected: str, line: int | None
) -> None:
    bad = f'@for_each_file("services/*.yaml")\ndef bad(file):\n{code}\n'
    files: Files = {
        "lehr.yaml": WORKSPACE,
        "assets/plain.yaml": service("plain"),
        "services/a.yaml": "name: a\ncommand: [x]\n",
        "generators/g.py": IMPORTS + bad,
    }
    broken, mended = generate_each([files, {**files, "generators/g.py": IMPORTS + GOOD}], SHORT)
    assert codes(broken) == [expected], broken.diagnostics
    at = only(broken).at
    assert at is not None
    assert at.file == "generators/g.py"
    assert line is None or at.line == line
    assert mended.diagnostics == ()
    assert set(mended.assets) == {"plain", "a"}


def test_the_limit_on_what_is_yielded_is_for_one_call_not_for_all_of_them() -> None:
    files: Files = {
        **{f"services/{number}.yaml": "x" for number in range(30)},
        "lehr.yaml": WORKSPACE,
        "generators/g.py": IMPORTS
        + "@for_each_file('services/*.yaml')\ndef large(file):\n"
        + "    yield asset(file.path, 'sample.Policy', {'text': 'x' * 100_000})\n",
    }
    [made] = generate_each([files], SandboxLimits(answer_bytes=1_000_000))
    assert not errors(made.diagnostics), made.diagnostics
    assert len(made.assets) == 30


def test_after_an_answer_that_cannot_be_read_the_rest_is_made() -> None:
    files: Files = {
        "lehr.yaml": WORKSPACE,
        "services/a.yaml": "a",
        "services/b.yaml": "b",
        "generators/g.py": IMPORTS
        + "@for_each_file('services/*.yaml')\ndef one(file):\n"
        + "    if file.text() == 'b':\n"
        + GARBLE.replace("\n", "\n    ")
        + "\n    yield asset(file.text(), 'sample.Policy', {})\n",
    }
    garbled, mended = generate_each([files, {**files, "services/b.yaml": "c"}])
    assert codes(garbled) == ["GEN026"], garbled.diagnostics
    assert set(mended.assets) == {"a", "c"}


def test_what_a_generator_prints_garbles_nothing_and_is_a_warning() -> None:
    made = generated_by(
        """
import sys, os
print("at import")
@for_each_file("services/*.yaml")
def loud(file):
    print("x" * 100_000)
    os.write(1, b"raw" * 1000)
    print("err", file=sys.stderr)
    yield asset("loud", "sample.Service", {})
"""
    )
    assert set(codes(made)) == {"GEN028"}
    assert not errors(made.diagnostics)
    assert set(made.assets) == {"plain", "loud"}


# --- incremental ------------------------------------------------------------------------------


def test_errors_leave_the_last_good_assets_in_force() -> None:
    good: Files = {"lehr.yaml": WORKSPACE, "assets/a.yaml": service("a"), "assets/b.yaml": service("b")}
    broken: Files = {**good, "assets/a.yaml": "id: [", "assets/c.yaml": service("c")}
    first, refused, third = generate_each([good, broken, {**broken, "assets/a.yaml": service("a", "new")}])
    assert first.touched is None
    assert (refused.assets, refused.touched) == (first.assets, frozenset())
    assert errors(refused.diagnostics)
    assert set(third.assets) == {"a", "b", "c"}
    assert third.touched == frozenset(map(AssetId, ("a", "c")))


def test_only_what_has_changed_is_read_again() -> None:
    files: Files = {"lehr.yaml": WORKSPACE, "generators/g.py": IMPORTS + GOOD}
    files |= {f"assets/{n}.yaml": service(f"p{n}") for n in range(20)}
    files |= {f"services/{n}.yaml": f"name: s{n}\ncommand: [x]\n" for n in range(20)}
    changed = MemorySnapshot({**files, "assets/3.yaml": service("p3", "new")})

    async def main() -> Generated:
        worker = GenerationWorker(REGISTRY, Inline())
        try:
            await worker.generate(MemorySnapshot(files))
            return await worker.generate(changed)
        finally:
            await worker.close()

    made = asyncio.run(main())
    assert changed.reads == ["assets/3.yaml"]
    assert made.touched == frozenset({AssetId("p3")})


def test_a_generators_digest_changes_with_code_and_workspace_alone() -> None:
    files: Files = {"lehr.yaml": WORKSPACE, "generators/g.py": IMPORTS + GOOD}
    same, data, code, workspace = (
        made.generators
        for made in generate_each(
            [
                files,
                {**files, "assets/a.yaml": service("a")},
                {**files, "generators/g.py": IMPORTS + GOOD + "\n"},
                {**files, "lehr.yaml": "partition: other\n"},
            ]
        )
    )
    assert same == data
    assert len({same, code, workspace}) == 3


def test_a_worker_that_was_killed_is_started_again_and_says_everything_anew() -> None:
    files: Files = {"lehr.yaml": WORKSPACE, "assets/a.yaml": service("a")}

    async def main() -> None:
        worker = GenerationWorker(REGISTRY, Inline())
        try:
            await worker.generate(MemorySnapshot(files))
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            with raises("GEN102", TransientError):
                await worker.generate(MemorySnapshot(files))
            made = await worker.generate(MemorySnapshot({**files, "assets/b.yaml": service("b")}))
            assert (set(made.assets), made.touched) == ({"a", "b"}, None)
        finally:
            await worker.close()

    asyncio.run(main())


def test_a_worker_may_take_its_time_as_long_as_it_gets_on() -> None:
    files: Files = {
        **{f"services/{number}.yaml": "x" for number in range(12)},
        "lehr.yaml": WORKSPACE,
        "generators/g.py": IMPORTS
        + "import select\n@for_each_file('services/*.yaml')\ndef slow(file):\n"
        + "    select.select([], [], [], 0.5)\n"
        + "    yield asset(file.path, 'sample.Policy', {})\n",
    }

    async def main() -> Generated:
        worker = GenerationWorker(REGISTRY, Inline(), answer_seconds=5.0)
        try:
            return await worker.generate(MemorySnapshot(files))
        finally:
            await worker.close()

    assert len(asyncio.run(main()).assets) == 12


def test_a_worker_that_does_not_answer_is_ended_and_started_again() -> None:
    files: Files = {
        "lehr.yaml": WORKSPACE,
        "services/a.yaml": "name: a\ncommand: [x]\n",
        "generators/g.py": IMPORTS
        + '@for_each_file("services/*.yaml")\ndef f(file):\n    while True: pass\n',
    }

    async def main() -> None:
        worker = GenerationWorker(REGISTRY, Inline(), answer_seconds=1.0)
        try:
            with raises("GEN101", TransientError):
                await worker.generate(MemorySnapshot(files))
            made = await worker.generate(MemorySnapshot({**files, "generators/g.py": IMPORTS + GOOD}))
            assert set(made.assets) == {"a"}
        finally:
            await worker.close()

    asyncio.run(main())


def test_a_registry_that_cannot_be_imported_is_named_in_the_error() -> None:
    async def main() -> None:
        worker = GenerationWorker("lehr.testing.samples:nothing", Inline())
        try:
            with raises("GEN102", TransientError, match="nothing"):
                await worker.generate(MemorySnapshot({"lehr.yaml": WORKSPACE}))
        finally:
            await worker.close()

    asyncio.run(main())


def test_a_source_that_cannot_be_read_is_passed_on_and_harms_nothing() -> None:
    files: Files = {"lehr.yaml": WORKSPACE, "assets/a.yaml": service("a")}

    class Unreadable(MemorySnapshot):
        def read(self, path: str) -> bytes:
            raise TransientError("the disk is away")

    async def main() -> None:
        worker = GenerationWorker(REGISTRY, Inline())
        try:
            with pytest.raises(TransientError, match="the disk is away"):
                await worker.generate(Unreadable(files))
            assert set((await worker.generate(MemorySnapshot(files))).assets) == {"a"}
        finally:
            await worker.close()

    asyncio.run(main())


PARENT = """
import asyncio, os, signal
from lehr.base.blocking import Inline
from lehr.generate.engine.client import GenerationWorker
from lehr.model.incarnation import SourceRevision
from lehr.sources.archive import HeldSnapshot

async def main():
    worker = GenerationWorker("lehr.testing.samples:registry", Inline())
    await worker.generate(HeldSnapshot(SourceRevision("memory:", "1"), {"lehr.yaml": b"partition: p"}))
    print(worker.pid, flush=True)
    input()
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_a_worker_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        worker = os.pidfd_open(int(parent.stdout.readline()))
        parent.stdin.write("\n")
        parent.stdin.close()
        parent.wait()
    try:
        assert select.select([worker], [], [], 20.0)[0], "the worker lives on"
    finally:
        os.close(worker)


def test_an_answer_of_many_messages_is_whole() -> None:
    code = """
@for_each_file("services/*.yaml")
def many(file):
    for number in range(10_001):
        yield asset(f"many/{number}", "sample.Service", {"command": ["run"]})
"""
    made = generated_by(code)
    assert made.diagnostics == ()
    assert len(made.assets) == 10_002
    assert made.touched is None or len(made.touched) >= 10_001
