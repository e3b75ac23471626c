"""Given staging and production, when an incarnation is promoted, production has that and nothing else."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lehr.base.documents import load
from tests.checksums import seal
from tests.e2e.bad_input.workspace import Done, Workspace

PRODUCTION = """\
partition: production
# What staging has proved.
assets: ["sources/tried/lehr.File/**/*.json"]   # as it stands
sources:
  tried: {partition: shop, state: ../../staging/state, incarnation: 1,
          digest: "0000000000000000000000000000000000000000"}
"""


class Stages:
    """Staging, whose workspace is called shop, and production, in folders of their own."""

    def __init__(self, folder: Path) -> None:
        self.staging, self.production = Workspace(folder / "staging"), Workspace(folder / "production")
        for workspace in (self.staging, self.production):
            for role in ("AUTHOR", "COMMITTER"):
                workspace.environment[f"GIT_{role}_NAME"] = "Ada"
                workspace.environment[f"GIT_{role}_EMAIL"] = "ada@example.org"
            del workspace.environment["LEHR_STATE"]
            # As on two machines: the file that both have would have two writers on one.
            workspace.environment["XDG_STATE_HOME"] = str(workspace.folder / "states")
        self.greeting = self.stage("hello")
        self.production.write("lehr.yaml", PRODUCTION)
        self.production.commit()

    def stage(self, content: str) -> Path:
        path = self.staging.declare_file("greeting", content)
        self.staging.commit()
        done = self.staging.once("--state", str(self.staging.state))
        assert done.code == 0, done.err
        return path

    def promote(self, what: str, *arguments: str) -> Done:
        workspace = str(self.production.repository / "lehr.yaml")
        return self.production.lehr("promote", what, "--to", workspace, *arguments)

    def pinned(self) -> dict[str, object]:
        loaded = load("lehr.yaml", (self.production.repository / "lehr.yaml").read_bytes())
        found: dict[str, object] = loaded.documents[0].value["sources"]["tried"]
        return found

    def run(self) -> Done:
        return self.production.once("--state", str(self.production.state))

    def get(self, what: str) -> list[dict[str, Any]]:
        told = self.production.lehr("get", what, "-o", "json", "--state", str(self.production.state))
        assert told.code == 0, told.err
        found: list[dict[str, Any]] = json.loads(told.out)
        return found

    def incarnations(self) -> list[dict[str, Any]]:
        return self.get("incarnations")


@pytest.fixture
def stages(tmp_path: Path) -> Stages:
    return Stages(tmp_path)


def test_production_gets_what_was_promoted_and_the_commit_is_two_values(stages: Stages) -> None:
    # when staging's first incarnation is promoted
    done = stages.promote("shop@1", "-m", "it works")
    assert done.code == 0, done.err
    # then the pin is a commit that changes these two values, and no comment
    assert stages.pinned()["incarnation"] == 1
    assert stages.pinned()["digest"] != "0" * 40
    assert stages.production.git("log", "-1", "--format=%s") == "Promote shop@1: it works"
    assert stages.production.git("show", "--format=", "--numstat") == "1\t1\tlehr.yaml"
    assert "# as it stands" in (stages.production.repository / "lehr.yaml").read_text()
    # and production has it, and says which
    assert stages.run().code == 0
    assert [item["id"] for item in stages.get("assets")] == ["greeting"]
    listed = stages.production.lehr(
        "get", "incarnations", "-o", "json", "--state", str(stages.production.state)
    )
    [incarnation] = json.loads(listed.out)
    revisions = {item.get("folder", ""): item for item in incarnation["sources"]}
    assert revisions["sources/tried"]["source"] == "partition:shop@1"
    assert revisions["sources/tried"]["revision"] == stages.pinned()["digest"]
    # when staging goes on, then production stays
    stages.stage("changed")
    assert stages.run().code == 0
    assert len(stages.incarnations()) == 1
    # when that is promoted, too, then production follows
    assert stages.promote("shop@latest", "-m", "again").code == 0
    assert stages.pinned()["incarnation"] == 2
    assert stages.run().code == 0


def test_what_staging_does_not_run_is_refused_unless_a_reason_is_given(stages: Stages) -> None:
    stages.stage("second")
    before = stages.production.git("rev-parse", "HEAD")
    # when an incarnation is promoted that staging has left behind
    stages.promote("shop@1", "-m", "back").failed("error[CLI131]", "greeting", "shop@2")
    assert stages.production.git("rev-parse", "HEAD") == before
    # when somebody says why, then that stands in the commit
    done = stages.promote("shop@1", "-m", "back", "--unconverged", "it ran for a year")
    assert done.code == 0, done.err
    assert "Not converged: it ran for a year" in stages.production.git("log", "-1", "--format=%B")


def test_content_that_is_not_what_was_pinned_is_never_published(stages: Stages) -> None:
    # given a pin that somebody wrote by hand
    stages.run().failed("the source tried cannot be read", "shop@1 does not match its pin")
    # given a right pin, when staging's state is tampered with, then it is noticed, too
    assert stages.promote("shop@1", "-m", "it works").code == 0
    with closing(sqlite3.connect(stages.staging.state / "state.sqlite")) as database, database:
        database.execute("UPDATE asset_version SET body = CAST(replace(body, 'hello', 'HELLO') AS BLOB)")
        seal(database)
    stages.run().failed("the source tried cannot be read", "shop@1 does not match its pin")


def test_production_goes_on_when_staging_is_gone(stages: Stages) -> None:
    assert stages.promote("shop@1", "-m", "it works").code == 0
    assert stages.run().code == 0
    # when staging's state is gone
    stages.staging.state.rename(stages.staging.folder / "away")
    # then production publishes what it declares itself, with what it has of staging
    stages.production.write(
        "lehr.yaml", (stages.production.repository / "lehr.yaml").read_text() + "let_go: {}\n"
    )
    stages.production.commit()
    assert stages.run().code == 0
    # and what it never had is an error that says where it was looked for
    stages.promote("shop@2", "-m", "again").failed("error[STO142]", "staging/state")


def test_an_exported_incarnation_is_promoted_as_a_file(stages: Stages) -> None:
    file = stages.staging.folder / "shop-1"
    exported = stages.staging.lehr(
        "store", "export", "shop@1", str(file), "--state", str(stages.staging.state)
    )
    assert exported.code == 0, exported.err
    stages.promote("shop@1", "--from", str(file), "-m", "by file").failed("error[CLI131]")
    stages.promote("shop@7", "--from", str(file), "-m", "x").failed("error[CLI130]", "shop@1", "shop@7")
    done = stages.promote("shop@1", "--from", str(file), "-m", "by file", "--unconverged", "elsewhere")
    assert done.code == 0, done.err
    assert "archive" in stages.pinned()
    assert "state" not in stages.pinned()
    assert stages.run().code == 0
    # when the file is changed, then it is refused
    stages.production.state.rename(stages.production.folder / "away")
    file.write_bytes(file.read_bytes().replace(b"hello", b"HELLO"))
    stages.run().failed("the source tried cannot be read", "was changed")


def test_the_first_promotion_adds_the_source(stages: Stages) -> None:
    stages.production.write("lehr.yaml", "partition: production\nassets: [sources/shop/lehr.File/*.json]\n")
    stages.production.commit()
    stages.promote("shop@1", "-m", "x").failed("error[CLI129]", "--from")
    done = stages.promote("shop@1", "-m", "the first", "--from", str(stages.staging.state))
    assert done.code == 0, done.err
    written = (stages.production.repository / "lehr.yaml").read_text()
    assert 'state: "../../staging/state"' in written
    assert stages.run().code == 0


def test_what_cannot_be_published_is_not_promoted(stages: Stages) -> None:
    # given a workspace of production that declares the same asset itself
    stages.production.declare_file("greeting", "mine")
    stages.production.write("lehr.yaml", PRODUCTION.replace("assets: [", 'assets: ["assets/*.json", '))
    stages.production.commit()
    stages.promote("shop@1", "-m", "x").failed("GEN008", "nothing was written")


def test_a_dry_run_shows_the_diff_and_writes_nothing(stages: Stages) -> None:
    before = stages.production.git("rev-parse", "HEAD")
    # also where production's own store is named, which is not the one that staging is read from
    stages.production.environment["LEHR_STORE"] = "postgresql://nobody@/production?host=/nowhere"
    told = stages.promote("shop@1", "--dry-run", "--no-check", "-o", "json")
    assert told.code == 0, told.err
    assert "incarnation: 1" in json.loads(told.out)["diff"]
    assert stages.production.git("rev-parse", "HEAD") == before
