"""Given a workspace in force, when somebody commits files that make no sense, then nothing is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Running, Workspace, strict, until

FILE = "id: new\ntype: lehr.File\npayload:\n  path: /nowhere/new\n  content: new\n"
LEVELS = 12
BOMB = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 10)}]\n" for n in range(LEVELS))

BOMB_OF_SCHEMAS = "name: team.Thing\nschema:\n  $ref: '#/$defs/d0'\n  $defs:\n    d40: {}\n" + "".join(
    f"    d{n}: {{anyOf: [{{$ref: '#/$defs/d{n + 1}'}}, {{$ref: '#/$defs/d{n + 1}'}}]}}\n" for n in range(40)
)
RULE = "addons: {lehr.DependsOn: {rules: [{asset: motd, allow: WHAT}]}}\n"
TWICE = "'mine.changes.all(a, mine.changes.all(b, a.matches(b)))'"

GENERATOR = """
from lehr.sdk.generator import for_all_files


@for_all_files("*.yaml")
def bad(files):
    raise RuntimeError("out of cheese")
    yield
"""

RECURSION = GENERATOR.replace('raise RuntimeError("out of cheese")', "(lambda f: f(f))(lambda f: f(f))")
NO_NUMBER = """
from lehr.sdk.generator import asset, for_all_files


@for_all_files("*.yaml")
def bad(files):
    yield asset("bad", "lehr.File", {"path": "/nowhere/bad", "content": float("nan")})
"""

BAD: dict[str, tuple[str, str | bytes, str, str]] = {
    "binary": ("assets/bad.yaml", b"\x7fELF\x02\x01\x01\x00\x00\xff\xfe", "DOC002", "not UTF-8"),
    "not UTF-8": ("assets/bad.yaml", FILE.encode() + b"# caf\xe9\n", "DOC002", "0xe9"),
    "UTF-16": ("assets/bad.yaml", FILE.encode("utf-16"), "DOC002", "UTF-16"),
    "control character": ("assets/bad.yaml", FILE.replace("content: new", 'content: "\x07"'), "DOC003", "U+"),
    "huge": ("assets/bad.yaml", FILE + "#" * 10_000_000, "GEN011", "10,000,0"),
    "huge asset": (
        "assets/bad.yaml",
        FILE.replace("content: new", "content: " + "x" * 200_000),
        "GEN009",
        "200,",
    ),
    "deep YAML": ("assets/bad.yaml", "[" * 100_000, "DOC007", "64"),
    "deep JSON": ("assets/bad.json", "[" * 100_000, "DOC007", "64"),
    "deep TOML": ("assets/bad.toml", "a = " + "[" * 100_000, "DOC007", "64"),
    "alias bomb": ("assets/bad.yaml", BOMB, "DOC008", "expand to too much"),
    "duplicate key, YAML": ("assets/bad.yaml", FILE + "  content: old\n", "DOC005", "'content' occurs again"),
    "duplicate key, JSON": ("assets/bad.json", '{"id": "a",\n "id": "b"}', "DOC005", "'id' occurs again"),
    "duplicate key, TOML": ("assets/bad.toml", 'id = "a"\nid = "b"\n', "DOC005", "occurs again"),
    "syntax": ("assets/bad.yaml", "id: [new\n", "DOC004", "not valid YAML"),
    "id with ..": ("assets/bad.yaml", FILE.replace("id: new", "id: ../../new"), "GEN004", "../../new"),
    "id with a control character": (
        "assets/bad.yaml",
        FILE.replace("id: new", 'id: "new\\e[31m"'),
        "GEN004",
        r"new\x1b[31m",
    ),
    "path with ..": ("assets/bad.yaml", FILE.replace("/nowhere/new", "/nowhere/../new"), "GEN007", ".."),
    "id twice": ("assets/bad.yaml", FILE.replace("id: new", "id: motd"), "GEN008", "motd"),
    "unknown type": ("assets/bad.yaml", FILE.replace("lehr.File", "lehr.Fiel"), "GEN005", "lehr.File"),
    "byte order mark": ("assets/bad.yaml", b"\xef\xbb\xbf" + FILE.encode(), "DOC002", "byte order mark"),
    "NUL": ("assets/bad.json", b'{"id": "a\0b"}', "DOC003", "U+0000"),
    "carriage return": ("assets/bad.yaml", FILE.replace("\n", "\r"), "DOC003", "U+000D"),
    "key that is no string": ("assets/bad.yaml", FILE + "  no: 1\n  1: no\n", "DOC006", "the key 1"),
    "id that is no string": (
        "assets/bad.yaml",
        FILE.replace("id: new", "id: 012"),
        "GEN003",
        "the number 12",
    ),
    "id beyond bounds": (
        "assets/bad.yaml",
        FILE.replace("id: new", f"id: {'x' * 10_000}"),
        "GEN004",
        "10000",
    ),
    "number beyond 64 bits": ("assets/bad.json", '{"id": 18446744073709551616}', "DOC011", "64 bits"),
    "number beyond bounds, TOML": ("assets/bad.toml", f"id = {'9' * 10_000}", "DOC011", "64 bits"),
    "date, TOML": ("assets/bad.toml", "id = 2024-01-01", "DOC012", "quote it"),
    "declared tags": ("assets/bad.yaml", "%TAG !a! b\n" * 100 + f"--- {FILE}", "DOC009", "64"),
    "file name with a new line": ("assets/a\nb.yaml", "id: [", "DOC004", "a\\nb.yaml:1:6"),
    "file name of 255 bytes": (f"assets/{'x' * 250}.yaml", "id: [", "DOC004", f"{'x' * 250}.yaml:1:6"),
    "schema without an end": ("types/bad.yaml", BOMB_OF_SCHEMAS, "GEN014", "more than 10,000 times"),
    "schema from elsewhere": (
        "types/bad.yaml",
        "name: team.Thing\nschema: {$schema: 'http://127.0.0.1:1/x'}\n",
        "GEN014",
        "only https://json-schema.org/",
    ),
    "rule that makes no sense": ("assets/bad.yaml", FILE + RULE.replace("WHAT", "'mine.'"), "VAL006", "mine"),
    "rule without an end": ("assets/bad.yaml", FILE + RULE.replace("WHAT", TWICE), "VAL006", "inside each"),
    "generator that recurses": ("generators/bad.py", RECURSION, "GEN022", "recursion"),
    "generator whose number is none": ("generators/bad.py", NO_NUMBER, "GEN027", "not a finite number"),
    "too many patterns in one": (
        "lehr.yaml",
        "partition: shop\nassets: ['{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}']\n",
        "GEN002",
        "100 names",
    ),
    "workspace file": ("lehr.yaml", "partition: shop\nassetts: []\n", "GEN002", "assetts"),
    "another partition": ("lehr.yaml", "partition: pub\n", "PUB003", "belongs to shop"),
    "generator that fails": (
        "generators/bad.py",
        GENERATOR,
        "GEN022",
        "out of cheese",
    ),
}


class Shop:
    """A workspace with one file, in force and looked after."""

    def __init__(self, workspace: Workspace, running: Running, motd: Path) -> None:
        self.workspace = workspace
        self.running = running
        self.motd = motd


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    workspace = Workspace(tmp_path_factory.mktemp("files"))
    motd = workspace.declare_file("motd", "welcome\n")
    workspace.commit()
    with workspace.run() as running:
        running.says("production is as intended")
        yield Shop(workspace, running, motd)


@pytest.mark.parametrize("case", BAD)
def test_a_commit_that_makes_no_sense_is_refused_and_says_where_and_why(case: str, shop: Shop) -> None:
    path, content, code, word = BAD[case]
    workspace, before = shop.workspace, shop.motd.stat()
    workspace.write(path, content)
    commit = workspace.commit(case)
    try:
        said = shop.running.says(f"{commit[:12]} was refused", "1 error")
        assert "shop@1 stays in force" in said
        assert f"error[{code}]" in said
        assert path.replace("\n", "\\n") in said, said
        assert word in " ".join(said.split()), said
        assert "fix:" in said
        assert "\x1b" not in said
        assert "Traceback" not in said
        assert shop.motd.stat() == before
    finally:
        workspace.git("revert", "--no-edit", "HEAD")


def test_validate_tells_all_problems_at_once(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    expected = set()
    for number, (path, content, code, _word) in enumerate(BAD.values()):
        if path.startswith("assets/") and code not in (
            "GEN008",
            "GEN011",
            "VAL006",
        ):  # not alone; slow; judged when all else is well
            name = f"assets/{number}{Path(path).suffix}"
            workspace.write(name, content)
            expected.add((name, code))
    del workspace.environment["LEHR_STATE"]  # there is none yet
    done = workspace.lehr("validate", str(workspace.repository), "-o", "json")
    assert done.code == 1
    problems = json.loads(done.out)
    assert {(item["at"]["file"], item["code"]) for item in problems} >= expected
    assert all(item["what"] and item["fix"] for item in problems), problems


def test_while_a_commit_is_refused_what_is_in_force_is_still_looked_after(shop: Shop) -> None:
    workspace = shop.workspace
    workspace.write("assets/bad.yaml", "id: [")
    commit = workspace.commit("Broken")
    shop.running.says(f"{commit[:12]} was refused")
    shop.motd.unlink()
    until("the file is back", shop.motd.exists, shop.running.said)
    why = workspace.lehr("why", "motd")
    assert "was refused" in why.out
    assert "shop@1 stays in force" in why.out
    status = workspace.lehr("status")
    assert f"newest commit {commit[:12]} was refused" in " ".join(status.out.split())
    workspace.git("rm", "--quiet", "--force", "assets/bad.yaml")
    workspace.declare_file("motd", "welcome back\n")
    workspace.commit("Mended")
    until("the next commit is in force", lambda: shop.motd.read_text() == "welcome back\n")


def test_a_file_that_may_not_be_read_is_named_and_nothing_is_published(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    motd = workspace.declare_file("motd", "welcome\n")
    other = workspace.declare_file("other", "other\n")
    secret = workspace.repository / "assets" / "other.json"
    with workspace.run("--poll", "1s", prefix=strict()) as running:
        running.says("production is as intended: 2 assets")
        secret.chmod(0)
        workspace.declare_file("motd", "changed\n")
        running.says(
            "the newest revision could not be read",
            "shop@1 stays in force",
            f"error[PUB001]: {secret} cannot be read",
            "why: Permission denied",
            "fix: let this user read it",
        )
        assert motd.read_text() == "welcome\n"
        other.unlink()
        until("what is in force is looked after", other.exists)
        secret.chmod(0o600)
        until("what was edited meanwhile is in force", lambda: motd.read_text() == "changed\n", running.said)
