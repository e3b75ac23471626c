"""The rules of imports: they can be read, match their file, and are never in force."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from lehr.model.reason import Reason
from lehr.model.writes import Import, TakeLease
from lehr.sdk.store import Store
from lehr.store.archive import ArchiveError, write_archive
from lehr.testing.conformance.rules import hold, raises
from lehr.testing.conformance.store.subject import (
    NOW,
    PARTITION,
    RULES,
    Subject,
    asset,
    commit,
    contents,
    published,
    refusal,
)


@contextmanager
def _exported(store: Store) -> Iterator[Path]:
    """A file with incarnation 1 of a store that continues to 2, which has other assets."""
    header = published(store, 0, asset("a", "1"), asset("b", "1"))
    with tempfile.TemporaryDirectory(prefix="lehr-") as folder:
        path = Path(folder) / "file"
        write_archive(path, header, store.intent.assets(PARTITION, 1))
        published(store, 1, asset("c", "1"), removals=["a", "b"])
        yield path


@RULES
def what_is_imported_is_read_and_never_in_force(subject: Subject) -> None:
    """It is found by its name, with all its assets; intent is as before."""
    with subject.opened() as store, _exported(store) as path:
        hold(store.intent.imported() == [], "nothing is imported before it is")
        header = store.intent.incarnation(PARTITION, 1)
        for _again in range(2):
            hold(commit(store, Import(path, NOW)) == header, "importing answers the header")
        [kept] = store.intent.imported()
        hold((kept.header, kept.at) == (header, NOW), "what is imported is listed, once")
        found = list(store.intent.imported_assets(f"{PARTITION}@1"))
        hold(found == [asset("a", "1"), asset("b", "1")], f"its assets come by id, not {found}")
        rest = list(store.intent.imported_assets(f"{PARTITION}@1", "a"))
        hold(rest == [asset("b", "1")], f"or from one on, not {rest}")
        newest = store.intent.newest(PARTITION)
        hold(newest is not None and newest.sequence == 2, "the newest is as before")
        hold(contents(store, 2) == [asset("c", "1")], "and so is what it holds")
        hold([head.id for head in store.intent.heads(PARTITION)] == ["c"], "nothing more is in force")


@RULES
def a_damaged_file_imports_nothing(subject: Subject) -> None:
    """Nor do the writes that came with it."""
    with subject.opened() as store, _exported(store) as path:
        good = path.read_bytes()
        for content in (good[:-5], good.replace(b'"value":"1"', b'"value":"2"'), b""):
            path.write_bytes(content)
            with raises(ArchiveError, "a damaged file is refused"):
                store.commit([TakeLease(PARTITION, "one", NOW), Import(path, NOW)])
            hold(store.intent.imported() == [], "what is damaged is not imported")
            hold(list(store.intent.imported_assets(f"{PARTITION}@1")) == [], "not a part of it either")
        hold(commit(store, TakeLease(PARTITION, "one", NOW)) == 1, "a commit that raised has written nothing")


@RULES
def another_of_the_same_name_replaces_only_when_told(subject: Subject) -> None:
    """Two states may use the same numbers for their incarnations."""
    with subject.opened() as store, _exported(store) as path:
        commit(store, Import(path, NOW))
        before = list(store.intent.imported_assets(f"{PARTITION}@1"))
        # The same name, and other assets: those of the second.
        header, other = store.intent.incarnation(PARTITION, 2), path.with_name("other")
        assert header is not None
        write_archive(other, replace(header, sequence=1), store.intent.assets(PARTITION, 2))
        refusal(commit(store, Import(other, NOW)), Reason.EXISTS, "it is refused")
        hold(list(store.intent.imported_assets(f"{PARTITION}@1")) == before, "the first one stays")
        commit(store, Import(other, NOW, replace=True))
        found = list(store.intent.imported_assets(f"{PARTITION}@1"))
        hold(found == [asset("c", "1")], f"if requested, it takes the place, not {found}")
