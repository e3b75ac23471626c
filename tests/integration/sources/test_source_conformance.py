"""The shipped sources keep the rules of sources."""

from __future__ import annotations

import asyncio
import base64
import functools
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.model.declared_sources import DeclaredSource, SqlPlace
from lehr.model.incarnation import SourceRevision
from lehr.plugins.database.databases import rows
from lehr.sdk.source import FileEntry, Snapshot, Source
from lehr.sources import DirectorySource, GitSource
from lehr.sources.archive import entry_of
from lehr.sources.composite import CompositeSource
from lehr.sources.rows import RowsSource
from lehr.sources.signatures import Signers
from lehr.testing.conformance.source import RULES, Edit, Rule, Subject


def written(root: Path, edit: Edit) -> None:
    for name, content in edit.items():
        path = root / name
        if content is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


@contextmanager
def away(path: Path) -> Iterator[None]:
    """What is at `path` is somewhere else for a time."""
    elsewhere = path.with_name(path.name + "-away")
    path.rename(elsewhere)
    yield
    elsewhere.rename(path)


@contextmanager
def emptied(path: Path) -> Iterator[None]:
    """An empty directory stands in its place, as where nothing is mounted."""
    with away(path):
        path.mkdir()
        yield
        path.rmdir()


@contextmanager
def replaced(path: Path) -> Iterator[None]:
    """A file stands in its place."""
    with away(path):
        path.write_text("")
        yield
        path.unlink()


def directory(tmp_path: Path) -> Subject:
    root = tmp_path / "intent"
    root.mkdir()

    def again(source: Source, revision: SourceRevision) -> Snapshot:
        assert isinstance(source, DirectorySource)
        return source.at(revision)

    return Subject(
        open=lambda: DirectorySource(
            root, tmp_path / "state" / "archive.git", clock=SystemClock(), poll_seconds=0.05
        ),
        edit=lambda edit: written(root, edit),
        troubles=(lambda: away(root), lambda: emptied(root), lambda: replaced(root)),
        again=again,
    )


def git(root: Path, *arguments: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@example.org"}
    subprocess.run(["git", *arguments], cwd=root, env=environment, check=True, capture_output=True)


@contextmanager
def branch_gone(root: Path) -> Iterator[None]:
    """The branch that is followed has another name for a time."""
    git(root, "branch", "-m", "main", "other")
    yield
    git(root, "branch", "-m", "other", "main")


def repository(tmp_path: Path) -> Subject:
    root = tmp_path / "intent"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")

    def edit(edit: Edit) -> None:
        written(root, edit)
        git(root, "add", "-A")
        git(root, "-c", "core.autocrlf=false", "commit", "-q", "-m", "an edit")

    def force() -> None:
        git(root, "checkout", "-q", "--orphan", "again")
        git(root, "commit", "-q", "-m", "another history")
        git(root, "branch", "-M", "again", "main")
        git(root, "reflog", "expire", "--expire=now", "--all")
        git(root, "gc", "-q", "--prune=now")

    def again(source: Source, revision: SourceRevision) -> Snapshot:
        assert isinstance(source, GitSource)
        return source.at(revision)

    def opened() -> GitSource:
        return GitSource(
            str(root), tmp_path / "state" / "mirror.git", clock=SystemClock(), branch="main", poll_seconds=60
        )

    return Subject(
        open=opened,
        edit=edit,
        troubles=(
            lambda: away(root),
            lambda: emptied(root),
            lambda: replaced(root),
            lambda: branch_gone(root),
            lambda: emptied(root / ".git" / "objects"),
        ),
        again=again,
        forget=force,
    )


def folder_of_a_bare_repository(tmp_path: Path) -> Subject:
    """Pushed to, as on a server, and followed in one folder."""
    root, bare = tmp_path / "work", tmp_path / "intent.git"
    for path in (root, bare):
        path.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(bare, "init", "-q", "--bare", "-b", "main")

    def edit(edit: Edit) -> None:
        written(root / "in" / "side", edit)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "an edit")
        git(root, "push", "-q", "--force", str(bare), "HEAD:main")

    def force() -> None:
        git(root, "checkout", "-q", "--orphan", "again")
        git(root, "commit", "-q", "-m", "another history")
        git(root, "push", "-q", "--force", str(bare), "HEAD:main")
        git(bare, "gc", "-q", "--prune=now")

    def again(source: Source, revision: SourceRevision) -> Snapshot:
        assert isinstance(source, GitSource)
        return source.at(revision)

    return Subject(
        open=lambda: GitSource(
            f"file://{bare}",
            tmp_path / "state" / "mirror.git",
            clock=SystemClock(),
            branch="main",
            path="in/side",
            poll_seconds=60,
        ),
        edit=edit,
        troubles=(lambda: away(bare), lambda: emptied(bare), lambda: branch_gone(bare)),
        again=again,
        forget=force,
    )


class OneOfSeveral:
    """What a composite source shows below `sources/edited`, as a source."""

    def __init__(self, whole: CompositeSource) -> None:
        self.whole = whole
        self.name = whole.name
        self.keep = whole.keep
        self.changes = whole.changes

    def newest(self) -> Snapshot:
        return Shown(self.whole.newest())


class Shown:
    def __init__(self, whole: Snapshot) -> None:
        self.whole = whole
        self.revision = whole.revision

    def files(self) -> dict[str, FileEntry]:
        mounted = {path.partition("sources/edited/")[2]: item for path, item in self.whole.files().items()}
        return {path: FileEntry(path, item.content_id, item.size) for path, item in mounted.items() if path}

    def read(self, path: str) -> bytes:
        if path not in self.files():
            raise KeyError(path)
        return self.whole.read(f"sources/edited/{path}")


def one_of_several(tmp_path: Path) -> Subject:
    """A directory that the `lehr.yaml` of another one declares, beside a third."""
    inner = directory(tmp_path)
    around, third = tmp_path / "around", tmp_path / "third"
    for place in (around, third):
        place.mkdir()
    (around / "lehr.yaml").write_text("sources: {edited: {directory: a}, third: {directory: b}}\n")
    (third / "a").write_text("a")

    def beside(place: Path) -> DirectorySource:
        archive = tmp_path / "state" / f"{place.name}.git"
        return DirectorySource(place, archive, clock=SystemClock(), poll_seconds=0.05)

    def part(name: str, _: DeclaredSource) -> Source:
        return inner.open() if name == "edited" else beside(third)

    troubles = (*inner.troubles, lambda: away(third), lambda: emptied(third), lambda: away(around))
    return Subject(
        open=lambda: OneOfSeveral(CompositeSource(beside(around), part)), edit=inner.edit, troubles=troubles
    )


def signed(tmp_path: Path) -> Subject:
    """Every commit is signed by the one key that may."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen")
    plain = repository(tmp_path)
    root, key = tmp_path / "intent", tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    for name, value in (("gpg.format", "ssh"), ("user.signingKey", str(key)), ("commit.gpgSign", "true")):
        git(root, "config", name, value)
    signers = Signers([key.with_suffix(".pub").read_text()])

    def opened() -> GitSource:
        mirror = tmp_path / "state" / "mirror.git"
        return GitSource(str(root), mirror, clock=SystemClock(), branch="main", signers=signers)

    return replace(plain, open=opened)


class RowsAsFiles:
    """A source of rows that hold files, each a path and a content, as a source of these files."""

    def __init__(self, rows: RowsSource) -> None:
        self.rows = rows
        self.name = rows.name
        self.keep = rows.keep
        self.changes = rows.changes

    def newest(self) -> Snapshot:
        return Unpacked(self.rows.newest())


class Unpacked:
    def __init__(self, snapshot: Snapshot) -> None:
        self.revision = snapshot.revision
        self.contents = {
            row["path"]: base64.b64decode(row["content"]) for row in json.loads(snapshot.read("rows.json"))
        }

    def files(self) -> dict[str, FileEntry]:
        return {path: entry_of(path, content) for path, content in self.contents.items()}

    def read(self, path: str) -> bytes:
        return self.contents[path]


def rows_of_a_database(tmp_path: Path) -> Subject:
    """A table of paths and contents. What is a rule for files is one for rows."""
    path = tmp_path / "files.sqlite"

    def change(statement: str, *values: object) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(statement, values)

    change("CREATE TABLE file (path TEXT PRIMARY KEY, content BLOB)")

    def edit(edit: Edit) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            for name, content in edit.items():
                database.execute("DELETE FROM file WHERE path = ?", (name,))
                if content is not None:
                    database.execute("INSERT INTO file VALUES (?, ?)", (name, content))

    @contextmanager
    def renamed() -> Iterator[None]:
        change("ALTER TABLE file RENAME TO other")
        yield
        change("ALTER TABLE other RENAME TO file")

    @contextmanager
    def no_row() -> Iterator[None]:
        change("CREATE TABLE away AS SELECT * FROM file")
        change("DELETE FROM file")
        yield
        change("INSERT INTO file SELECT * FROM away")
        change("DROP TABLE away")

    def opened() -> RowsAsFiles:
        place = SqlPlace(sql="sqlite:files.sqlite", query="SELECT * FROM file", key=("path",), poll=0.1)
        archive = tmp_path / "state" / "rows.git"
        ask = functools.partial(rows, place.sql, place.query, tmp_path)
        return RowsAsFiles(
            RowsSource(place, archive, lambda _: ask(), clock=SystemClock(), blocking=Inline())
        )

    def again(source: Source, revision: SourceRevision) -> Snapshot:
        assert isinstance(source, RowsAsFiles)
        return Unpacked(source.rows.at(revision))

    return Subject(
        open=opened,
        edit=edit,
        troubles=(lambda: away(path), lambda: replaced(path), renamed, no_row),
        again=again,
    )


MAKE = [rows_of_a_database, directory, repository, folder_of_a_bare_repository, signed, one_of_several]


@pytest.mark.parametrize("make", MAKE, ids=lambda make: make.__name__)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_shipped_sources_keep_the_contract(
    rule: Rule, make: Callable[[Path], Subject], tmp_path: Path
) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    asyncio.run(rule(make(tmp_path)))
