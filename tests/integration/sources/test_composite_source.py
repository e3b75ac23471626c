"""Several sources as one: mounted, followed and kept together, or not read at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import TransientError
from lehr.model.declared_sources import DeclaredSource, DirectoryPlace
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import LeavesOut, Snapshot, Source, SourcesError, revisions_of
from lehr.sources import DirectorySource
from lehr.sources.archive import HeldSnapshot
from lehr.sources.composite import CompositeSource

DECLARED = """\
partition: a
sources:
  one: {directory: one}
  two: {directory: two}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name in ("intent", "one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "intent" / "lehr.yaml").write_text(DECLARED)
    (tmp_path / "one" / "a.yaml").write_text("a: 1\n")
    (tmp_path / "two" / "deep").mkdir()
    (tmp_path / "two" / "deep" / "b.yaml").write_text("b: 1\n")
    return tmp_path


def opened(here: Path, poll: float = 0.05) -> CompositeSource:
    def directory(name: str) -> DirectorySource:
        archive = here / "state" / f"{name}.git"
        return DirectorySource(here / name, archive, clock=SystemClock(), poll_seconds=poll)

    def part(name: str, declared: DeclaredSource) -> Source:
        assert isinstance(declared, DirectoryPlace)
        return directory(declared.directory)

    return CompositeSource(directory("intent"), part)


def contents(snapshot: Snapshot) -> dict[str, bytes]:
    return {path: snapshot.read(path) for path in snapshot.files()}


def problems(source: CompositeSource) -> list[tuple[str, str, str]]:
    with pytest.raises(SourcesError) as caught:
        source.newest()
    assert all(item.fix and item.why for item in caught.value.diagnostics)
    return [(item.code, item.subject, str(item.at)) for item in caught.value.diagnostics]


def test_the_files_of_each_are_below_its_name(here: Path) -> None:
    snapshot = opened(here).newest()
    assert contents(snapshot) == {
        "lehr.yaml": DECLARED.encode(),
        "sources/one/a.yaml": b"a: 1\n",
        "sources/two/deep/b.yaml": b"b: 1\n",
    }
    assert all(entry.path == path for path, entry in snapshot.files().items())
    for path in ("sources/one", "sources/one/", "sources/one/lehr.yaml", "sources/three/a.yaml", "a.yaml"):
        with pytest.raises(KeyError):
            snapshot.read(path)


def test_the_exact_revision_of_each_is_named(here: Path) -> None:
    source = opened(here)
    before = revisions_of(source.newest())
    assert [item.folder for item in before] == ["", "sources/one", "sources/two"]
    assert [item.source for item in before] == [
        f"directory:{here}/{name}" for name in ("intent", "one", "two")
    ]
    (here / "two" / "deep" / "b.yaml").write_text("b: 22\n")
    after = revisions_of(source.newest())
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, True, False]
    assert revisions_of(opened(here).newest()) == after


def test_an_edit_of_one_leaves_the_entries_of_the_others_as_they_are(here: Path) -> None:
    source = opened(here)
    before = source.newest().files()
    (here / "one" / "new.yaml").write_text("new: 1\n")
    after = source.newest().files()
    assert after.keys() - before.keys() == {"sources/one/new.yaml"}
    assert all(after[path] is before[path] for path in before if path != "lehr.yaml")


def test_without_declarations_it_is_the_source_itself(here: Path) -> None:
    (here / "intent" / "lehr.yaml").write_text("partition: a\n")
    snapshot = opened(here).newest()
    assert list(snapshot.files()) == ["lehr.yaml"]
    assert revisions_of(snapshot) == (snapshot.revision,)


@pytest.mark.parametrize("wrong", ["partition: a\nsources: {one: {dir: one}}\n", "a: [\n", "sources: 3\n"])
def test_a_mistake_in_the_declarations_leaves_it_to_generation_to_refuse_the_whole(
    here: Path, wrong: str
) -> None:
    (here / "intent" / "lehr.yaml").write_text(wrong)
    assert list(opened(here).newest().files()) == ["lehr.yaml"]


def test_if_one_cannot_be_read_the_whole_cannot_and_every_one_is_named_with_its_place(here: Path) -> None:
    source = opened(here)
    first = source.newest()
    (here / "one").rename(here / "away-1")
    assert problems(source) == [("PUB001", "one", "lehr.yaml:3:3")]
    (here / "two").rename(here / "away-2")
    assert problems(source) == [("PUB001", "one", "lehr.yaml:3:3"), ("PUB001", "two", "lehr.yaml:4:3")]
    assert len(problems(opened(here))) == 2
    (here / "away-1").rename(here / "one")
    (here / "away-2").rename(here / "two")
    assert source.newest().revision == first.revision


@pytest.mark.parametrize("path", ["sources/one/a.yaml", "sources/one/deep/a.yaml", "sources/one", "sources"])
def test_no_file_may_stand_where_a_source_is_mounted(here: Path, path: str) -> None:
    place = here / "intent" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("")
    found = problems(opened(here))
    assert ("SRC001", "lehr.yaml", "lehr.yaml:3:3") in found


@pytest.mark.parametrize("path", ["sources", "sources/one"])
def test_no_link_may_stand_where_a_source_is_mounted_either(here: Path, path: str) -> None:
    place = here / "intent" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(here / "two")
    assert ("SRC001", "lehr.yaml", "lehr.yaml:3:3") in problems(opened(here))


def test_links_in_a_declared_source_are_not_followed_and_listed(here: Path) -> None:
    (here / "one" / "out.yaml").symlink_to(here / "two" / "deep" / "b.yaml")
    snapshot = opened(here).newest()
    assert isinstance(snapshot, LeavesOut)
    assert snapshot.skipped == ("sources/one/out.yaml",)
    assert "sources/one/out.yaml" not in snapshot.files()


def test_files_beside_what_is_mounted_are_no_trouble(here: Path) -> None:
    (here / "intent" / "sources" / "one-more").mkdir(parents=True)
    (here / "intent" / "sources" / "one-more" / "a").write_text("mine")
    assert opened(here).newest().read("sources/one-more/a") == b"mine"


def test_all_that_an_incarnation_was_made_from_is_kept(here: Path) -> None:
    source = opened(here)
    then = source.newest()
    source.keep(then.revision)
    for item in revisions_of(then):
        name = item.source.rpartition("/")[2]
        part = DirectorySource(here / name, here / "state" / f"{name}.git", clock=SystemClock())
        kept = part.at(SourceRevision(item.source, item.revision))
        prefix = f"{item.folder}/" if item.folder else ""
        for path in kept.files():
            assert kept.read(path) == then.read(prefix + path)


def test_an_edit_of_any_is_hinted_at_and_so_is_one_of_a_source_that_was_declared_meanwhile(
    here: Path,
) -> None:
    async def look() -> None:
        source = opened(here)
        source.newest()
        hints = source.changes()
        for name in ("intent/lehr.yaml", "one/a.yaml", "two/deep/b.yaml"):
            with (here / name).open("a") as file:
                file.write("# more\n")
            await asyncio.wait_for(anext(hints), 10)
        (here / "three").mkdir()
        (here / "three" / "c").write_text("c")
        with (here / "intent" / "lehr.yaml").open("a") as file:
            file.write("  three: {directory: three}\n")
        assert source.newest().read("sources/three/c") == b"c"
        await asyncio.wait_for(anext(hints), 10)
        await hints.aclose()  # type: ignore[attr-defined]

    asyncio.run(look())


def test_after_a_hint_only_those_are_looked_at_that_gave_it_or_could_not_be_read(here: Path) -> None:
    async def look() -> None:
        source = opened(here)
        source.newest()
        hints = source.changes()
        # a hint of the first alone: it is polled all the time, and the others once in a while
        await asyncio.wait_for(anext(hints), 10)
        counted.clear()
        source.newest()
        assert counted == {"intent"}
        # whoever asks unasked has all looked at
        counted.clear()
        source.newest()
        assert counted == {"intent", "one", "two"}
        # what could not be read is looked at again
        (here / "two").rename(here / "away")
        with pytest.raises(SourcesError):
            source.newest()
        await asyncio.wait_for(anext(hints), 10)
        counted.clear()
        with pytest.raises(SourcesError):
            source.newest()
        assert counted == {"intent", "two"}
        (here / "away").rename(here / "two")
        await asyncio.wait_for(anext(hints), 10)
        assert "sources/two/deep/b.yaml" in source.newest().files()
        await hints.aclose()  # type: ignore[attr-defined]

    counted: set[str] = set()

    class Counted(DirectorySource):
        def newest(self) -> HeldSnapshot:
            counted.add(self.name.rpartition("/")[2])
            return super().newest()

    def opened(here: Path) -> CompositeSource:
        def directory(name: str, seconds: float) -> Counted:
            archive = here / "state" / f"{name}.git"
            return Counted(here / name, archive, clock=SystemClock(), poll_seconds=seconds)

        return CompositeSource(directory("intent", 0.05), lambda name, _: directory(name, 3600.0))

    asyncio.run(look())


def test_a_source_that_is_dropped_while_it_gives_a_hint_is_followed_no_more(here: Path) -> None:
    async def look() -> None:
        source = opened(here, poll=0.0)
        hints = source.changes()
        for declared in ("{}", "{one: {directory: one}}", "{two: {directory: two}}") * 5:
            (here / "intent" / "lehr.yaml").write_text(f"partition: a\nsources: {declared}\n")
            source.newest()
            await asyncio.wait_for(anext(hints), 10)
        await hints.aclose()  # type: ignore[attr-defined]

    asyncio.run(look())


def test_a_hint_is_not_lost_when_the_workspace_itself_cannot_be_read(here: Path) -> None:
    async def look() -> None:
        source = opened(here)
        source.newest()
        hints = source.changes()
        (here / "one" / "a.yaml").write_text("a: 22\n")
        (here / "intent").rename(here / "away")
        await asyncio.wait_for(anext(hints), 10)
        with pytest.raises(TransientError):
            source.newest()
        (here / "away").rename(here / "intent")
        await asyncio.wait_for(anext(hints), 10)
        assert source.newest().read("sources/one/a.yaml") == b"a: 22\n"
        await hints.aclose()  # type: ignore[attr-defined]

    asyncio.run(look())


def test_a_source_that_is_declared_otherwise_is_another(here: Path) -> None:
    source = opened(here)
    source.newest()
    (here / "intent" / "lehr.yaml").write_text("partition: a\nsources:\n  one: {directory: two}\n")
    assert set(source.newest().files()) == {"lehr.yaml", "sources/one/deep/b.yaml"}
