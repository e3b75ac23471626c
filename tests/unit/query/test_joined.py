"""The pasts of several sources, put together as generation saw them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lehr.model.incarnation import SourceRevision
from lehr.model.provenance import Commit
from lehr.query.joined import Past, past_of
from lehr.sdk.source import FileEntry

SOURCES = (
    SourceRevision("git:/intent", "1"),
    SourceRevision("git:/shared", "2", "sources/shared"),
    SourceRevision("sql:a", "3", "sources/shared-rows"),
    SourceRevision("lehr", "0.1"),
)


class Kept:
    """What was kept of one revision: a file `a` and a file `deep/b` that say whose they are."""

    def __init__(self, whose: str) -> None:
        self.whose = whose

    @property
    def commit(self) -> Commit | None:
        return Commit(self.whose, "", 0.0, "")

    def files(self) -> Mapping[str, FileEntry]:
        return {path: FileEntry(path, self.whose + path, 1) for path in ("a", "deep/b")}

    def read(self, path: str) -> bytes:
        return f"{self.whose} {self.files()[path].path}".encode()

    def last_change(self, path: str, line: int = 0) -> Commit | None:
        return Commit(self.whose, path, float(line), "")


def history(*kept: str) -> Past | None:
    return past_of(SOURCES, lambda revision: Kept(revision.revision) if revision.revision in kept else None)


def test_each_file_is_read_from_its_own_source() -> None:
    past = history("1", "2", "3")
    assert past is not None
    read = {path: past.read(path) for path in past.files()}
    assert read == {
        "a": b"1 a",
        "deep/b": b"1 deep/b",
        "sources/shared/a": b"2 a",
        "sources/shared/deep/b": b"2 deep/b",
        "sources/shared-rows/a": b"3 a",
        "sources/shared-rows/deep/b": b"3 deep/b",
    }
    assert all(entry.path == path for path, entry in past.files().items())


def test_who_changed_a_line_is_asked_of_its_own_source() -> None:
    past = history("1", "2", "3")
    assert past is not None
    assert past.commit == Commit("1", "", 0.0, "")
    assert past.last_change("a", 7) == Commit("1", "a", 7.0, "")
    assert past.last_change("sources/shared-rows/deep/b", 7) == Commit("3", "deep/b", 7.0, "")


def test_what_was_not_kept_is_missing_and_the_rest_can_be_read() -> None:
    past = history("2")
    assert past is not None
    assert set(past.files()) == {"sources/shared/a", "sources/shared/deep/b"}
    with pytest.raises(KeyError):
        past.read("a")
    assert past.last_change("a") is None
    assert history() is None


def test_one_source_alone_is_its_own_past() -> None:
    past = history("1")
    assert isinstance(past, Kept)
