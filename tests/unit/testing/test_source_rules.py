"""The conformance suite of sources finds what it claims to find."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from lehr.base.digest import digest, digest_bytes
from lehr.base.errors import TransientError
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import FileEntry, Snapshot
from lehr.testing.conformance import source as suite
from lehr.testing.conformance.source import RULES, Edit, Rule, Subject

Files = dict[str, bytes]


@dataclass
class Place:
    """Where people edit, what is kept for the source, and how often anybody edited."""

    files: Files = field(default_factory=dict)
    kept: dict[str, Files] = field(default_factory=dict)
    edits: int = 0
    broken: bool = False
    edited: list[asyncio.Event] = field(default_factory=list)

    def edit(self, edit: Edit) -> None:
        for path, content in edit.items():
            if content is None:
                del self.files[path]
            else:
                self.files[path] = content
        self.edits += 1
        for event in self.edited:
            event.set()

    @contextmanager
    def trouble(self) -> Iterator[None]:
        self.broken = True
        yield
        self.broken = False


class Held:
    """A snapshot: a copy of what there was."""

    def __init__(self, revision: SourceRevision, files: Files, place: Place) -> None:
        self.revision = revision
        self.contents = dict(files)
        self.place = place

    def entry(self, path: str, content: bytes) -> FileEntry:
        return FileEntry(path, digest_bytes(content), len(content))

    def files(self) -> Mapping[str, FileEntry]:
        return {path: self.entry(path, content) for path, content in self.contents.items()}

    def read(self, path: str) -> bytes:
        return self.contents[path]


class Good:
    """Follows a `Place`."""

    name = "memory:place"
    snapshot: type[Held] = Held

    def __init__(self, place: Place) -> None:
        self.place = place

    def revision(self) -> str:
        return digest(sorted((path, digest_bytes(content)) for path, content in self.place.files.items()))

    def newest(self) -> Snapshot:
        if self.place.broken:
            raise TransientError("the place cannot be reached")
        return self.held(self.revision(), self.place.files)

    def held(self, revision: str, files: Files) -> Snapshot:
        return self.snapshot(SourceRevision(self.name, revision), files, self.place)

    def keep(self, revision: SourceRevision) -> None:
        if revision.revision not in self.place.kept:
            assert revision.revision == self.revision()
            self.place.kept[revision.revision] = dict(self.place.files)

    def again(self, revision: SourceRevision) -> Snapshot:
        return self.held(revision.revision, self.place.kept[revision.revision])

    async def changes(self) -> AsyncIterator[None]:
        edited = asyncio.Event()
        self.place.edited.append(edited)
        while True:
            await edited.wait()
            edited.clear()
            yield


def of(made: type[Held]) -> type[Good]:
    """A source whose snapshots are of the class `made`."""

    class Source(Good):
        snapshot = made

    Source.__name__ = made.__name__
    return Source


class SkipsEmptyFiles(Good):
    def held(self, revision: str, files: Files) -> Snapshot:
        return super().held(revision, {path: content for path, content in files.items() if content})


class TranslatesLineEnds(Held):
    def __init__(self, revision: SourceRevision, files: Files, place: Place) -> None:
        super().__init__(
            revision, {path: content.replace(b"\r\n", b"\n") for path, content in files.items()}, place
        )


class AbsolutePaths(Held):
    def entry(self, path: str, content: bytes) -> FileEntry:
        return FileEntry(f"/{path}", digest_bytes(content), len(content))


class SizesAreCharacters(Held):
    def entry(self, path: str, content: bytes) -> FileEntry:
        return FileEntry(path, digest_bytes(content), len(content.decode(errors="ignore")))


class IdsOfPlaces(Held):
    def entry(self, path: str, content: bytes) -> FileEntry:
        return FileEntry(path, digest([path, digest_bytes(content)]), len(content))


class IdsAreSizes(Held):
    def entry(self, path: str, content: bytes) -> FileEntry:
        return FileEntry(path, str(len(content)), len(content))


class AbsentIsEmpty(Held):
    def read(self, path: str) -> bytes:
        return self.contents.get(path, b"")


class Normalises(Held):
    def read(self, path: str) -> bytes:
        return self.contents[path.removeprefix("./")]


class ReadsLive(Held):
    def read(self, path: str) -> bytes:
        return self.place.files[path] if path in self.place.files else self.contents[path]


class SharesTheFiles(Held):
    def __init__(self, revision: SourceRevision, files: Files, place: Place) -> None:
        super().__init__(revision, files, place)
        self.contents = files


class Renames(Held):
    """Its revision is whatever is newest."""

    @property
    def revision(self) -> SourceRevision:
        return SourceRevision(Good.name, Good(self.place).revision())

    @revision.setter
    def revision(self, revision: SourceRevision) -> None:
        pass


class LooksOnce(Good):
    """Takes the first look for all others of this process."""

    looked: Snapshot | None = None

    def newest(self) -> Snapshot:
        found = super().newest()
        self.looked = self.looked or found
        return self.looked


class NamesPathsAlone(Good):
    def revision(self) -> str:
        return digest(sorted(self.place.files))


class NamesContentsAlone(Good):
    def revision(self) -> str:
        return digest(sorted(digest_bytes(content) for content in self.place.files.values()))


class CountsLooks(Good):
    looks = 0

    def revision(self) -> str:
        self.looks += 1
        return f"{self.place.edits}.{self.looks}"

    def keep(self, revision: SourceRevision) -> None:
        self.place.kept.setdefault(revision.revision, dict(self.place.files))


class ForgetsItsName(Good):
    def held(self, revision: str, files: Files) -> Snapshot:
        return self.snapshot(SourceRevision("memory:", revision), files, self.place)


class HasAnUnwritableName(Good):
    name = "memory:caf\udce9"


class TroubleIsEmptiness(Good):
    def newest(self) -> Snapshot:
        return self.held("nothing", {}) if self.place.broken else super().newest()


class TroubleIsAPart(Good):
    def newest(self) -> Snapshot:
        if not self.place.broken:
            return super().newest()
        return self.held(self.revision(), {"lehr.yaml": self.place.files["lehr.yaml"]})


class TroubleIsThePast(Good):
    last: Snapshot | None = None

    def newest(self) -> Snapshot:
        if not self.place.broken or self.last is None:
            self.last = super().newest()
        return self.last


class TroubleIsAnyError(Good):
    def newest(self) -> Snapshot:
        if self.place.broken:
            raise OSError("no route to host")
        return super().newest()


class NeverRecovers(Good):
    def newest(self) -> Snapshot:
        if self.place.broken:
            self.place.files.pop("empty", None)
        return super().newest()


class ReadsHalf(Held):
    def read(self, path: str) -> bytes:
        content = super().read(path)
        return content[: len(content) // 2] if self.place.broken else content


class LosesTheEntry(Held):
    def read(self, path: str) -> bytes:
        if self.place.broken:
            raise KeyError(path)
        return super().read(path)


class KeepsNames(Good):
    """Keeps the name of a revision, and shows what there is now."""

    def again(self, revision: SourceRevision) -> Snapshot:
        return self.held(revision.revision, self.place.files)


class KeepsOne(Good):
    def keep(self, revision: SourceRevision) -> None:
        self.place.kept.clear()
        super().keep(revision)

    def again(self, revision: SourceRevision) -> Snapshot:
        kept = self.place.kept
        return self.held(revision.revision, kept.get(revision.revision) or next(iter(kept.values())))


class NeverHints(Good):
    async def changes(self) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield


class HintsOnce(Good):
    async def changes(self) -> AsyncIterator[None]:
        async for hint in super().changes():
            yield hint
            return


BREAKS: list[tuple[Rule, type[Good]]] = [
    (suite.snapshots_are_whole, SkipsEmptyFiles),
    (suite.snapshots_are_whole, of(TranslatesLineEnds)),
    (suite.entries_describe_files, of(AbsolutePaths)),
    (suite.entries_describe_files, of(SizesAreCharacters)),
    (suite.equal_content_has_an_equal_id, of(IdsOfPlaces)),
    (suite.equal_content_has_an_equal_id, of(IdsAreSizes)),
    (suite.unknown_paths_are_key_errors, of(AbsentIsEmpty)),
    (suite.unknown_paths_are_key_errors, of(Normalises)),
    (suite.snapshots_never_change, of(ReadsLive)),
    (suite.snapshots_never_change, of(SharesTheFiles)),
    (suite.snapshots_never_change, of(Renames)),
    (suite.edits_are_seen, LooksOnce),
    (suite.revisions_differ_with_the_content, NamesPathsAlone),
    (suite.revisions_differ_with_the_content, NamesContentsAlone),
    (suite.revisions_stay_while_nothing_changes, CountsLooks),
    (suite.revisions_name_their_source, ForgetsItsName),
    (suite.revisions_name_their_source, HasAnUnwritableName),
    (suite.what_cannot_be_read_raises, TroubleIsEmptiness),
    (suite.what_cannot_be_read_raises, TroubleIsAPart),
    (suite.what_cannot_be_read_raises, TroubleIsThePast),
    (suite.what_cannot_be_read_raises, TroubleIsAnyError),
    (suite.what_cannot_be_read_raises, NeverRecovers),
    (suite.snapshots_read_rightly_or_not_at_all, of(ReadsHalf)),
    (suite.snapshots_read_rightly_or_not_at_all, of(LosesTheEntry)),
    (suite.kept_revisions_stay_readable, KeepsNames),
    (suite.kept_revisions_stay_readable, KeepsOne),
    (suite.edits_are_hinted_at, NeverHints),
    (suite.edits_are_hinted_at, HintsOnce),
]


def subject(make: type[Good], patience: float = 10.0) -> Subject:
    place = Place()
    return Subject(
        open=lambda: make(place),
        edit=place.edit,
        troubles=(place.trouble,),
        again=lambda source, revision: source.again(revision),  # type: ignore[attr-defined]
        patience=patience,
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_source_keeps_every_rule(rule: Rule) -> None:
    asyncio.run(rule(subject(Good)))


@pytest.mark.parametrize(("rule", "broken"), BREAKS, ids=lambda value: value.__name__)
def test_a_source_that_breaks_a_rule_is_caught_by_it(rule: Rule, broken: type[Good]) -> None:
    with pytest.raises(AssertionError, match=f"^{rule.__name__}: "):
        asyncio.run(rule(subject(broken, patience=0.1)))


def test_every_rule_of_sources_has_a_source_that_breaks_it() -> None:
    assert {rule for rule, _ in BREAKS} == set(RULES)


def test_a_source_without_a_testable_trouble_is_not_held_to_be_safe() -> None:
    place = Place()
    with pytest.raises(AssertionError, match="at least one way"):
        asyncio.run(suite.what_cannot_be_read_raises(Subject(lambda: Good(place), place.edit, ())))
