"""`lehr blame` over real git, with several authors, and the incarnations that came of their commits."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from lehr import wiring
from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.cli.blame import document, text
from lehr.cli.stored import open_reading
from lehr.model.asset import Partition
from lehr.model.attempt import Publication
from lehr.model.provenance import Derivation
from lehr.model.writes import Write
from lehr.publish.publisher import Publisher
from lehr.query.blame import blame
from lehr.query.blame_values import Blame
from lehr.sdk.generation import Generation
from lehr.sdk.runtime import Runtime
from lehr.sdk.source import Source
from lehr.store.sqlite import SqliteStore
from tests.checksums import seal
from tests.codes import raises

PLAIN = """\
# The page that greets.
id: page
type: lehr.File
payload:
  path: out/page.txt
  content: hello
"""
SITES = """\
from lehr.sdk.generator import annotate, asset, for_all_files, for_each_asset, for_each_file


@for_each_file("sites/*.yaml")
def sites(file):
    site = file.yaml()
    yield asset(f"{site['name']}/file", "lehr.File", {
        "path": f"out/{site['name']}", "content": site["greeting"], "mode": "0640"})


@for_each_asset("lehr.File")
def owners(file):
    yield annotate(file.id, "lehr.Owner", {"team": "web"})


@for_all_files("sites/*.yaml")
def index(files):
    yield asset("index", "lehr.File", {"path": "out/index", "content": " ".join(f.path for f in files)})
"""
COPIES = """\
from lehr.sdk.generator import asset, for_each_asset


@for_each_asset("lehr.Command", makes="lehr.File")
def copies(command):
    yield asset(command.id + "/copy", "lehr.File", {"path": "out/c", "content": command.payload["apply"][0]})
"""
COMMAND = "id: build\ntype: lehr.Command\npayload:\n  apply: [./build.sh]\n  check: [./check.sh]\n"


class Place:
    """A repository, a state, and what follows the one into the other."""

    def __init__(self, folder: Path) -> None:
        self.repository = folder / "intent"
        self.state = folder / "state"
        self.repository.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("Ada", "Begin", {"lehr.yaml": "partition: shop\n", "assets/page.yaml": PLAIN})

    def git(self, *arguments: str, author: str = "Ada") -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.repository),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_EMAIL": f"{author.lower()}@example.org",
            "GIT_COMMITTER_NAME": "robot",
            "GIT_COMMITTER_EMAIL": "robot@example.org",
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.repository,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, author: str, subject: str, files: dict[str, str]) -> str:
        for name, content in files.items():
            path = self.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"{subject}\n\nAnd more.", author=author)
        return self.git("rev-parse", "HEAD")

    def publish(self, location: str | None = None) -> None:
        from lehr.cli.deployment import deployment_of

        self.state.mkdir(mode=0o700, exist_ok=True)
        source = wiring.source(deployment_of(location or str(self.repository), self.state))
        asyncio.run(publish(source, self.state / wiring.STATE_FILE))

    def blame(self, asset: str, field: str | None = None, incarnation: str = "latest") -> Blame:
        with open_reading(self.state) as reading:
            return blame(
                reading, lambda revision: wiring.past(self.state, revision), asset, field, incarnation
            )


async def publish(source: Source, path: Path) -> None:
    store = SqliteStore(path)

    async def ask(write: Write) -> object:
        return store.commit([write])[0]

    generation: Generation = wiring.generation()
    registry = wiring.registry()
    try:
        publisher = Publisher(
            Runtime(Partition("shop"), store, registry, SystemClock(), Chance(), Inline()),
            source,
            generation,
            wiring.generation,
            ask,
            Inline(),
        )
        attempt = await publisher.refresh()
        assert attempt.publication is Publication.PUBLISHED, attempt.diagnostics
    finally:
        await generation.close()
        store.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Three incarnations by three people."""
    place = Place(tmp_path_factory.mktemp("blame"))
    place.publish()
    place.write(
        "Grace",
        "Serve sites",
        {
            "sites/blog.yaml": "name: blog\ngreeting: welcome\n",
            "generators/sites.py": SITES,
            "generators/copies.py": COPIES,
            "assets/build.yaml": COMMAND,
        },
    )
    place.publish()
    place.write(
        "Alan",
        "Greet otherwise",
        {
            "sites/blog.yaml": "# Long may it live.\nname: blog\ngreeting: good day\n",
            "assets/page.yaml": "# A note above.\n" + PLAIN,
        },
    )
    place.publish()
    return place


def test_a_plain_field_is_blamed_on_the_line_that_says_it(place: Place) -> None:
    found = place.blame("page", "content")
    assert found.field is not None
    written = found.field.written
    assert written is not None
    assert (str(written.at), written.text) == ("assets/page.yaml:7:3", "content: hello")
    assert written.commit is not None
    assert (written.commit.author, written.commit.subject) == ("Ada <ada@example.org>", "Begin")
    assert (found.chain[0].since, found.field.since) == (2, 1)  # it was annotated in the second


def test_an_older_incarnation_is_blamed_on_its_own_revision(place: Place) -> None:
    found = place.blame("page", "/payload/content", "1")
    assert found.field is not None
    assert found.field.written is not None
    assert str(found.field.written.at) == "assets/page.yaml:6:3"
    assert not found.chain[0].makers


def test_a_default_is_written_nowhere(place: Place) -> None:
    found = place.blame("page", "payload.mode")
    assert found.field is not None
    assert (found.field.written, found.field.makers, found.field.found) == (None, (), ())
    assert any("default of the type" in line for line in text(found))


def test_a_generated_asset_names_its_generator_and_the_file_it_was_called_with(place: Place) -> None:
    found = place.blame("blog/file")
    [link] = found.chain
    made, annotated = link.makers
    assert made.by == Derivation("generators/sites.py:sites", 7, "file", "sites/*.yaml", "sites/blog.yaml")
    assert made.code.commit is not None
    assert made.code.commit.author == "Grace <grace@example.org>"
    [file] = made.files
    assert file.commit is not None
    assert file.commit.subject == "Greet otherwise"
    assert file.content == place.git("rev-parse", "HEAD:sites/blog.yaml")
    assert (annotated.addon, annotated.by.generator) == ("lehr.Owner", "generators/sites.py:owners")
    assert annotated.assets == ("blog/file",)
    assert link.declared is None


def test_a_generated_value_is_found_in_the_input_and_not_said_to_be_written_there(place: Place) -> None:
    found = place.blame("blog/file", "content")
    assert found.field is not None
    assert found.field.written is None
    assert [found.chain[0].makers[index].by.generator for index in found.field.makers] == [
        "generators/sites.py:sites"
    ]
    [there] = found.field.found
    assert str(there.source.at) == "sites/blog.yaml:3:1"
    assert there.source.commit is not None
    assert there.source.commit.author == "Alan <alan@example.org>"
    assert found.field.since == 3
    assert any(line.startswith("value found at  sites/blog.yaml:3:1") for line in text(found))


def test_a_constant_is_found_in_the_generator(place: Place) -> None:
    found = place.blame("blog/file", "mode")
    assert found.field is not None
    assert [str(item.source.at) for item in found.field.found] == ["generators/sites.py:8:77"]


def test_a_computed_value_is_found_nowhere(place: Place) -> None:
    found = place.blame("index", "content")
    assert found.field is not None
    assert found.field.found == ()
    assert any("computed" in line for line in text(found))


def test_an_annotation_is_blamed_on_who_made_it(place: Place) -> None:
    found = place.blame("page", "addons.lehr.Owner.team")
    assert found.field is not None
    [index] = found.field.makers
    assert found.chain[0].makers[index].addon == "lehr.Owner"
    assert [str(item.source.at) for item in found.field.found] == ["generators/sites.py:13:52"]


def test_the_chain_goes_on_through_assets_down_to_the_file_that_people_wrote(place: Place) -> None:
    found = place.blame("build/copy", "content")
    copy, build = found.chain
    assert copy.makers[0].assets == ("build",)
    assert build.declared is not None
    assert build.declared.commit is not None
    assert build.declared.commit.author == "Grace <grace@example.org>"
    assert found.field is not None
    assert [str(item.source.at) for item in found.field.found] == ["assets/build.yaml:4:11"]


def test_a_field_that_is_not_there_is_an_error_that_names_those_that_are(place: Place) -> None:
    with raises("QRY102") as told:
        place.blame("page", "payload.contents")
    assert "payload.content" in told.value.why
    with raises("QRY101", match="shop@1.*blog/file"):
        place.blame("blog/file", None, "1")
    with raises("QRY121", match="pge"):
        place.blame("pge")


def test_plain_data_says_the_same(place: Place) -> None:
    told = document(place.blame("blog/file", "content"))
    assert told["field"]["value"] == "good day"
    assert told["chain"][0]["makers"][0]["by"]["item"] == "sites/blog.yaml"
    assert told["chain"][0]["makers"][0]["files"][0]["commit"]["time"].endswith("Z")


def test_a_force_push_does_not_make_the_past_unreadable(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.publish()
    place.git("checkout", "-q", "--orphan", "other")
    place.git("branch", "-q", "-D", "main")
    place.git("checkout", "-q", "-b", "main")
    place.write("Eve", "Rewrite all", {"assets/page.yaml": PLAIN.replace("hello", "evening")})
    place.publish()
    found = place.blame("page", "content", "1")
    assert found.field is not None
    assert found.field.written is not None
    assert found.field.written.commit is not None
    assert found.field.written.commit.author == "Ada <ada@example.org>"


def test_a_plain_directory_has_lines_and_no_authors(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for left in ("assets", "lehr.yaml"):
        (place.repository / left).rename(tmp_path / left)
    folder = tmp_path / "plain"
    folder.mkdir()
    for left in ("assets", "lehr.yaml"):
        (tmp_path / left).rename(folder / left)
    place.publish(str(folder))
    found = place.blame("page", "content")
    assert found.field is not None
    assert found.field.written is not None
    assert (str(found.field.written.at), found.field.written.commit) == ("assets/page.yaml:6:3", None)


def test_a_directory_of_a_repository_is_blamed_by_its_own_paths(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("Bea", "Prod", {"prod/lehr.yaml": "partition: shop\n", "prod/assets/page.yaml": PLAIN})
    place.publish(f"file://{place.repository}#main:prod")
    written = place.blame("page", "content").field
    assert written is not None
    assert written.written is not None
    assert written.written.commit is not None
    assert (written.written.at.file, written.written.commit.author) == (
        "assets/page.yaml",
        "Bea <bea@example.org>",
    )


def test_without_what_was_kept_the_generators_are_still_known(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("Ada", "Sites", {"sites/a.yaml": "name: a\ngreeting: x\n", "generators/s.py": SITES})
    place.publish()
    (place.state / "sources").rename(tmp_path / "elsewhere")
    found = place.blame("a/file", "content")
    assert not found.readable
    assert found.chain[0].makers[0].by.generator == "generators/s.py:sites"
    assert any(line.startswith("Lines are not shown") for line in text(found))
    assert not any("default" in line for line in text(place.blame("page", "content")))


def test_a_field_of_a_declared_type_is_written_in_its_file(tmp_path: Path) -> None:
    place = Place(tmp_path)
    declared = "name: team.Thing\ndescription: A thing.\nschema:\n  type: object\n"
    place.write("Tim", "Types", {"types/thing.yaml": declared})
    place.publish()
    found = place.blame("type/team.Thing", "schema.type")
    assert found.field is not None
    assert found.field.written is not None
    assert str(found.field.written.at) == "types/thing.yaml:4:3"


CLASS = """\
import msgspec
from lehr.sdk.types import asset_type


@asset_type("team.Thing", version=2, was=[{"version": 1, "steps": [{"rename": {"/size": "/length"}}]}])
class Thing(msgspec.Struct, frozen=True):
    length: int
    colour: str = "red"
"""


def test_a_type_is_declared_where_its_class_is_and_old_forms_are_found_in_their_files(tmp_path: Path) -> None:
    place = Place(tmp_path)
    old = "id: t\ntype: team.Thing\nversion: 1\npayload:\n  size: 5\n"
    place.write("Tim", "Types", {"types/thing.py": CLASS, "assets/t.yaml": old})
    place.publish()
    own = place.blame("type/team.Thing").chain[0]
    assert own.recorded
    assert own.declared is not None
    assert str(own.declared.at) == "types/thing.py:5"
    found = place.blame("t", "length").field
    assert found is not None
    assert found.written is not None
    assert str(found.written.at) == "assets/t.yaml:5:3"


ADDON = """\
name: team.Seen
kind: addon
version: 2
was: [{version: 1, steps: [{rename: {/who: /by}}]}]
schema: {properties: {by: {type: string}}}
"""


def test_the_line_of_an_addon_in_an_old_form_is_found(tmp_path: Path) -> None:
    place = Place(tmp_path)
    asset = "id: t\ntype: team.Thing\npayload: {length: 5}\n"
    old = f"{asset}addons:\n  team.Seen:\n    who: ada\nversions: {{team.Seen: 1}}\n"
    place.write("Tim", "Types", {"types/thing.py": CLASS, "types/seen.yaml": ADDON, "assets/t.yaml": old})
    place.publish()
    found = place.blame("t", "/addons/team.Seen/by").field
    assert found is not None
    assert found.written is not None
    assert str(found.written.at) == "assets/t.yaml:6:5"


def test_what_an_older_program_did_not_record_is_not_made_up(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("Ada", "Sites", {"sites/a.yaml": "name: a\ngreeting: x\n", "generators/s.py": SITES})
    place.publish()
    with sqlite3.connect(place.state / wiring.STATE_FILE) as db:
        db.execute("UPDATE asset_version SET origin = ? WHERE id = 'a/file'", (b'{"file":"sites/a.yaml"}',))
        seal(db)
    db.close()
    found = place.blame("a/file", "content")
    assert (found.chain[0].recorded, found.chain[0].makers) == (False, ())
    told = list(text(found))
    assert any("not recorded by the Lehr version of that time" in line for line in told)
    assert not any("default" in line or "declared at" in line for line in told)


def test_a_file_that_was_moved_is_told_as_it_was_when_the_asset_last_changed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("Ada", "More", {"assets/b.yaml": PLAIN.replace("page", "other")})
    place.publish()
    place.git("mv", "assets/page.yaml", "assets/moved.yaml")
    place.write("Bob", "Move", {"assets/b.yaml": PLAIN.replace("page", "other").replace("hello", "bye")})
    place.publish()
    found = place.blame("page", "content")
    assert found.field is not None
    written = found.field.written
    assert written is not None
    assert (str(written.at), written.incarnation) == ("assets/page.yaml:6:3", 1)
    assert written.commit is not None
    assert written.commit.subject == "Begin"
    assert any("assets/page.yaml:6:3  (as of shop@1)" in line for line in text(found))
