"""Several sources as one: the one with `lehr.yaml`, and those that it declares.

Pure composition: the caller opens the declared sources.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from lehr.base import documents
from lehr.base.diagnostics import Diagnostic, Position, file_problem
from lehr.base.digest import digest_all
from lehr.base.errors import LehrError, TransientError
from lehr.model.declared_sources import FOLDER, WORKSPACE_FILE, DeclaredSource, declared_sources, mount_of
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import (
    FileEntry,
    LeavesOut,
    RefusedRevisionError,
    Remarks,
    Snapshot,
    Source,
    SourcesError,
)
from lehr.sources.combined_hints import CombinedHints

Open = Callable[[str, DeclaredSource], Source]
"""Opens a declared source by name. May raise `StalledError`."""

_Declarations = tuple[dict[str, DeclaredSource], dict[str, Position], list[Diagnostic]]
"""The declarations, their positions, and the files that collide with theirs."""

_HELD = 3


class _Part(msgspec.Struct, frozen=True):
    """An open declared source."""

    declared: DeclaredSource
    source: Source


class _Mounted:
    """A snapshot's files below a folder. Built once for each snapshot."""

    def __init__(self, snapshot: Snapshot, folder: str, before: _Mounted | None) -> None:
        self.snapshot = snapshot
        self.folder = folder
        known = {} if before is None else before.entries
        self.entries: dict[str, FileEntry] = {}
        for path, entry in snapshot.files().items():
            mounted = f"{folder}/{path}"
            same = known.get(mounted)
            if same is None or same.content_id != entry.content_id:
                same = FileEntry(mounted, entry.content_id, entry.size)
            self.entries[mounted] = same

    @property
    def revision(self) -> SourceRevision:
        return replace(self.snapshot.revision, folder=self.folder)

    @property
    def skipped(self) -> tuple[str, ...]:
        return tuple(f"{self.folder}/{path}" for path in _skipped(self.snapshot))


class CompositeSnapshot:
    """The files of one snapshot, and those of others in folders of their own.

    Attributes:
        revision: a digest of all `revisions`.
    """

    def __init__(self, primary: Snapshot, mounted: Mapping[str, _Mounted]) -> None:
        """Add the files of `mounted`, by folder, to those of `primary`."""
        self._primary = primary
        self._mounted = mounted
        self._files: Mapping[str, FileEntry] | None = None
        self.revisions = (primary.revision, *(item.revision for item in mounted.values()))
        parts = (part for item in self.revisions for part in (item.folder, item.source, item.revision))
        self.revision = SourceRevision(primary.revision.source, digest_all(parts))

    @property
    def skipped(self) -> tuple[str, ...]:
        mounted = (path for item in self._mounted.values() for path in item.skipped)
        return (*_skipped(self._primary), *mounted)

    def files(self) -> Mapping[str, FileEntry]:
        if self._files is None:
            merged = dict(self._primary.files())
            for item in self._mounted.values():
                merged.update(item.entries)
            self._files = MappingProxyType(merged)
        return self._files

    def read(self, path: str) -> bytes:
        for folder, item in self._mounted.items():
            if path.startswith(folder + "/"):
                return item.snapshot.read(path[len(folder) + 1 :])
        return self._primary.read(path)


class CompositeSource:
    """A source, and below `sources/NAME/` the files of the sources that its `lehr.yaml` declares.

    If none is declared, it equals the source itself. If a declaration is invalid, it also has only the
    source's own files: generation then finds the mistake and refuses the whole.

    Checking a source may cost a fetch or a query. So after a hint of `changes`, only sources that gave one or
    could not be read are checked; a call of `newest` without a hint checks all of them.

    Args:
        primary: the source with `lehr.yaml`.
        open_declared: opens the others.
    """

    def __init__(self, primary: Source, open_declared: Open) -> None:
        self._primary = primary
        self._open = open_declared
        self._parts: dict[str, _Part] = {}
        self._mounted: dict[str, _Mounted] = {}
        self._held: dict[str, tuple[tuple[Source, SourceRevision], ...]] = {}
        self._read: tuple[Snapshot, _Declarations] | None = None
        self._seen: dict[Source, Snapshot] = {}
        self._hints = CombinedHints(self._sources)

    @property
    def name(self) -> str:
        """That of the source with `lehr.yaml`."""
        return self._primary.name

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """Those of the source with `lehr.yaml`."""
        return self._primary.remarks if isinstance(self._primary, Remarks) else ()

    def newest(self) -> Snapshot:
        """The newest snapshot of every source. One call at a time.

        Raises:
            SourcesError: a declared source cannot be read, or files are in its place.
            TransientError, StalledError: the source itself cannot be read.
        """
        hinted = self._hints.take()
        try:
            primary = self._look(self._primary, hinted)
        except LehrError:
            self._seen.clear()  # the hints of the others are used up, so check all sources next time
            raise
        return self._mounted_on(primary, hinted)

    def mounted(self, primary: Snapshot) -> Snapshot:
        """`primary` with the newest snapshot of every source that it declares. Raises as `newest` does."""
        return self._mounted_on(primary, None)

    def _mounted_on(self, primary: Snapshot, hinted: frozenset[Source] | None) -> Snapshot:
        declared, places, collisions = self._declarations(primary)
        problems = list(collisions)
        parts: dict[str, _Part] = {}
        mounted: dict[str, _Mounted] = {}
        refused: dict[str, SourceRevision] = {}
        for name, item in sorted(declared.items()):
            try:
                part = parts[name] = self._opened(name, item)
                mounted[mount_of(name)] = self._mount(name, self._look(part.source, hinted))
            except RefusedRevisionError as error:
                problems.append(_refused(name, places[name], error))
                refused[mount_of(name)] = replace(error.revision, folder=mount_of(name))
            except LehrError as error:
                problems.append(_unreadable(name, places[name], error))
        if parts != self._parts:
            self._parts = parts  # as a whole: they are followed in another thread
            self._hints.changed()
        known = self._sources()
        self._seen = {source: snapshot for source, snapshot in self._seen.items() if source in known}
        if problems:
            whole = len(refused) == len(problems)
            read = refused | {folder: item.revision for folder, item in mounted.items()}
            revisions = (primary.revision, *(read[folder] for folder in sorted(read)))
            raise SourcesError(problems, primary, revisions if whole else ())
        self._mounted = mounted
        if not parts:
            return primary
        return self._hold(CompositeSnapshot(primary, mounted))

    def keep(self, revision: SourceRevision) -> None:
        """Keep the revision of every source. Raises `StalledError` when it is no longer known."""
        parts = self._held.get(revision.revision)
        if parts is None:
            self._primary.keep(revision)
            return
        for source, item in parts:
            source.keep(item)

    def changes(self) -> AsyncIterator[None]:
        """A hint whenever one of the sources that the last `newest` found gives one."""
        return self._hints.hints()

    def _sources(self) -> frozenset[Source]:
        return frozenset((self._primary, *(part.source for part in self._parts.values())))

    def _declarations(self, primary: Snapshot) -> _Declarations:
        """The declarations of `primary`; read once for each snapshot."""
        if self._read is None or self._read[0] is not primary:
            declared, places = _declared(primary)
            self._read = primary, (declared, places, _collisions(primary, places))
        return self._read[1]

    def _look(self, source: Source, hinted: frozenset[Source] | None) -> Snapshot:
        """The newest snapshot of one source; or the last one, if other sources gave the hint."""
        last = self._seen.pop(source, None)
        if last is None or hinted is None or source in hinted:
            last = source.newest()
        self._seen[source] = last
        return last

    def _opened(self, name: str, declared: DeclaredSource) -> _Part:
        part = self._parts.get(name)
        if part is not None and part.declared == declared:
            return part
        return _Part(declared, self._open(name, declared))

    def _mount(self, name: str, snapshot: Snapshot) -> _Mounted:
        folder = mount_of(name)
        before = self._mounted.get(folder)
        if before is not None and before.snapshot is snapshot:
            return before
        return _Mounted(snapshot, folder, before)

    def _hold(self, snapshot: CompositeSnapshot) -> CompositeSnapshot:
        """Return `snapshot`, and remember what to keep."""
        revision = snapshot.revision.revision
        sources = (self._primary, *(part.source for part in self._parts.values()))
        own = (replace(item, folder="") for item in snapshot.revisions)
        self._held.pop(revision, None)
        self._held[revision] = tuple(zip(sources, own, strict=True))
        while len(self._held) > _HELD:
            del self._held[next(iter(self._held))]
        return snapshot


def _skipped(snapshot: Snapshot) -> tuple[str, ...]:
    return snapshot.skipped if isinstance(snapshot, LeavesOut) else ()


def _declared(primary: Snapshot) -> tuple[dict[str, DeclaredSource], dict[str, Position]]:
    """The declared sources, and their positions; none if a declaration is invalid."""
    entry = primary.files().get(WORKSPACE_FILE)
    if entry is None or entry.size > documents.MAX_BYTES:
        return {}, {}
    loaded = documents.load(WORKSPACE_FILE, primary.read(WORKSPACE_FILE))
    if loaded.diagnostics or len(loaded.documents) != 1:
        return {}, {}
    [document] = loaded.documents
    if not isinstance(document.value, dict) or not document.value.get("sources"):
        return {}, {}
    try:
        found = declared_sources(document.value["sources"])
    except ValueError:
        return {}, {}
    return found, {name: document.position(f"/sources/{name}") for name in found}


def _collisions(primary: Snapshot, places: Mapping[str, Position]) -> list[Diagnostic]:
    """Files of `primary` in the place of a declared source; `places` has the names."""
    if not places:
        return []
    taken = [path for path in (*primary.files(), *_skipped(primary)) if path.startswith(FOLDER)]
    problems = []
    for name, at in places.items():
        folder = mount_of(name)
        clashing = (path for path in taken if path in (FOLDER, folder) or path.startswith(f"{folder}/"))
        found = next(clashing, None)
        if found is not None:
            problems.append(
                file_problem(
                    "SRC001",
                    at,
                    what=f"{found} is where the files of the source {name} belong",
                    why=f"they are read below {folder}/, and the two could not be distinguished",
                    fix="move the file elsewhere, or give the source a different name",
                )
            )
    return problems


def _refused(name: str, at: Position, error: RefusedRevisionError) -> Diagnostic:
    return Diagnostic(
        code="PUB007",
        what=f"the newest revision of the source {name} is refused: {error.what}",
        why=error.why,
        fix=error.fix,
        subject=name,
        at=at,
    )


def _unreadable(name: str, at: Position, error: LehrError) -> Diagnostic:
    passes = isinstance(error, TransientError)
    fix = "Lehr retries automatically" if passes else f"fix it, or its declaration in {WORKSPACE_FILE}"
    return Diagnostic(
        code="PUB001",
        what=f"the source {name} cannot be read: {error.what}",
        why=error.why or "without it the intent is incomplete; the last incarnation stays in force",
        fix=error.fix or fix,
        subject=name,
        at=at,
    )
