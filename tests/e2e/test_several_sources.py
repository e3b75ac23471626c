"""Given a workspace of several sources, when any of them changes or fails, the whole follows or stays."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace

GENERATOR = """\
from lehr.sdk.generator import asset, for_all_files, for_each_file


@for_each_file("sources/catalogue/*.toml")
def services(file):
    service = file.toml()
    name = service["name"]
    yield asset(name, "lehr.File", {"path": "HERE/services/" + name, "content": service["text"]})


@for_all_files("sources/rows/rows.json")
def clusters(files):
    for row in files[0].json():
        yield asset("cluster/" + row["name"], "lehr.File",
                    {"path": "HERE/clusters/" + row["name"], "content": str(row["size"])})


@for_all_files("sources/shared/motd")
def motd(files):
    yield asset("motd", "lehr.File", {"path": "HERE/motd", "content": files[0].bytes().decode()})
"""
DECLARED = """\
partition: shop
sources:
  catalogue: {{git: {catalogue}, path: services}}
  rows: {{sql: "sqlite:{rows}", query: "SELECT name, size FROM cluster", key: [name], poll: 0.2}}
  shared: {{directory: {shared}, poll: 0.2}}
"""


class Sources(Workspace):
    """A workspace, and beside it a catalogue in git, a database and a directory."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.catalogue, self.rows, self.shared = (
            folder / "catalogue",
            folder / "rows.sqlite",
            folder / "shared",
        )
        self.shared.mkdir()
        (self.shared / "motd").write_text("hello")
        self.sql("CREATE TABLE cluster (name TEXT PRIMARY KEY, size INTEGER)")
        self.sql("INSERT INTO cluster VALUES ('eu', 1), ('us', 2)")
        self.catalogue.mkdir()
        self.in_catalogue("init", "-q", "-b", "main")
        self.sell("web", "v1")
        self.write("generators/all.py", GENERATOR.replace("HERE", str(self.production)))
        declared = DECLARED.format(catalogue=self.catalogue, rows=self.rows, shared=self.shared)
        self.write("lehr.yaml", declared)
        self.commit()

    def in_catalogue(self, *arguments: str) -> None:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=self.catalogue, check=True, capture_output=True)

    def sell(self, name: str, text: str) -> None:
        file = self.catalogue / "services" / f"{name}.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'name = "{name}"\ntext = "{text}"\n')
        self.in_catalogue("add", "-A")
        self.in_catalogue("commit", "-q", "-m", f"{name} {text}")

    def sql(self, statement: str) -> None:
        with contextlib.closing(sqlite3.connect(self.rows)) as database, database:
            database.execute(statement)

    def files(self) -> dict[str, str]:
        paths = (path for path in self.production.rglob("*") if path.is_file())
        return {str(path.relative_to(self.production)): path.read_text() for path in paths}


@pytest.fixture
def shop(tmp_path: Path) -> Sources:
    return Sources(tmp_path)


def test_every_source_is_read_named_and_blamed(shop: Sources) -> None:
    # given an incarnation made of four sources
    done = shop.once()
    assert done.code == 0, done.err
    # then the exact revision of each is named
    [listed] = json.loads(shop.lehr("get", "incarnations", "-o", "json").out)
    sources = {item.get("folder", ""): item["source"] for item in listed["sources"]}
    revisions = {item.get("folder", ""): item["revision"] for item in listed["sources"]}
    assert sources.keys() >= {"", "sources/catalogue", "sources/rows", "sources/shared"}
    assert sources["sources/catalogue"] == f"git:{shop.catalogue}:services"
    assert f", rows {revisions['sources/rows'][:12]}" in shop.lehr("get", "incarnations").out
    # when somebody asks where a value comes from, then the file and the commit of its own source are named
    blamed = shop.lehr("blame", "web", "/payload/content").out
    assert "sources/catalogue/web.toml" in blamed
    assert "Ada" in blamed
    # when the database forgets, and the catalogue is rewritten and gone, then blame reads what was kept
    shop.sql("UPDATE cluster SET size = 9")
    shop.catalogue.rename(shop.folder / "gone")
    assert "sources/rows/rows.json" in shop.lehr("blame", "cluster/eu", "/payload/content").out
    assert "Ada" in shop.lehr("blame", "web", "/payload/content").out


def test_every_source_is_followed(shop: Sources) -> None:
    with shop.run() as running:
        running.says("production is as intended")
        assert shop.files()["motd"] == "hello"
        # when the catalogue gets a commit, the database a row, the directory another text
        shop.sell("web", "v2")
        shop.wait("--for", "incarnation=2")
        shop.sql("INSERT INTO cluster VALUES ('ap', 3)")
        shop.wait("--for", "incarnation=3")
        (shop.shared / "motd").write_text("good day")
        shop.wait("--for", "incarnation=4")
        # then production has all of them
        shop.wait()
        assert shop.files() == {
            "services/web": "v2",
            "clusters/eu": "1",
            "clusters/us": "2",
            "clusters/ap": "3",
            "motd": "good day",
        }


def test_while_one_source_cannot_be_read_nothing_is_published_and_the_last_good_stays(
    shop: Sources,
) -> None:
    with shop.run() as running:
        running.says("production is as intended")
        # when the catalogue is not there, and the directory changes
        shop.catalogue.rename(shop.folder / "away")
        (shop.shared / "motd").write_text("good day")
        # then it is said which source, and where it is declared
        running.says("PUB001", "the source catalogue cannot be read", "lehr.yaml:3:3")
        assert shop.sequence() == 1
        assert shop.files()["motd"] == "hello"
        # when the database answers with nothing instead, then that is said, and everything stays, too
        shop.sql("DELETE FROM cluster")
        running.says("the source rows cannot be read", "the query returns no rows")
        assert shop.files()["clusters/eu"] == "1"
        # when all are back, then what has changed is published
        (shop.folder / "away").rename(shop.catalogue)
        shop.sql("INSERT INTO cluster VALUES ('eu', 1), ('us', 2)")
        shop.wait("--for", "incarnation=2")
        shop.wait()
        assert shop.files()["motd"] == "good day"


def test_mistakes_in_the_declaration_are_all_told_with_their_places(shop: Sources) -> None:
    shop.write("lehr.yaml", "partition: shop\nsources:\n  A: {git: x}\n  b: {directry: y}\n  c: {git: 3}\n")
    del shop.environment["LEHR_STATE"]
    told = shop.lehr("validate", str(shop.repository))
    told.failed("lehr.yaml:3:3", "`A` is not a valid source name", "lehr.yaml:4:3", "lehr.yaml:5:")


def test_a_source_that_is_not_there_is_told_before_anything_is_published(shop: Sources) -> None:
    shop.catalogue.rename(shop.folder / "away")
    shop.rows.unlink()
    named = shop.environment.pop("LEHR_STATE")
    shop.lehr("validate", str(shop.repository)).failed(
        "error[PUB001]: the source catalogue cannot be read",
        "--> lehr.yaml:3:3 | 3 | catalogue: {git:",
        "error[PUB001]: the source rows cannot be read",
        "--> lehr.yaml:4:3 | 4 | rows: {sql:",
    )
    shop.environment["LEHR_STATE"] = named
    shop.once().failed("the source catalogue cannot be read")


def test_an_edit_by_program_is_validated_with_all_sources(shop: Sources) -> None:
    assert shop.once().code == 0
    shop.environment["GIT_AUTHOR_NAME"] = shop.environment["GIT_COMMITTER_NAME"] = "Ada"
    shop.environment["GIT_AUTHOR_EMAIL"] = shop.environment["GIT_COMMITTER_EMAIL"] = "ada@example.org"
    # the guard against assets that disappear would refuse it if the other sources were not there
    edit = ("set", str(shop.repository / "lehr.yaml"), "sources.rows.poll")
    done = shop.lehr(*edit, "3", "-m", "less often")
    assert done.code == 0, done.err
    # where one cannot be read, nobody can tell; it is written all the same if that is said
    shop.catalogue.rename(shop.folder / "away")
    shop.lehr(*edit, "4", "-m", "later").failed("source catalogue cannot be read", "nothing was written")
    assert shop.lehr(*edit, "4", "-m", "later", "--no-check").code == 0
