"""Whatever is edited, declared, dropped or away: sources that are followed are what they are afresh."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from lehr.base.clock import SystemClock
from lehr.base.errors import TransientError
from lehr.model.declared_sources import DeclaredSource, DirectoryPlace
from lehr.sdk.source import Snapshot, Source, SourcesError, revisions_of
from lehr.sources import CompositeSource
from lehr.testing.sim.source import Repository, SimulatedSource
from lehr.testing.sim.trace import Trace

NAMES = ("a", "b", "c")
PATIENCE = 5.0

Edit = Callable[["World"], None]


class World:
    """A workspace, and three repositories that it may declare."""

    def __init__(self) -> None:
        trace = Trace()
        self.primary = Repository(trace)
        self.others = {name: Repository(trace) for name in NAMES}
        self.declared = {"a": "a", "b": "b"}
        self.extra: dict[str, bytes] = {}
        self.write()
        for name, repository in self.others.items():
            repository.edit({"file": name.encode()}, "begin")

    def write(self) -> None:
        lines = "".join(f"  {name}: {{directory: {place}}}\n" for name, place in self.declared.items())
        content = f"partition: p\nsources:\n{lines}" if lines else "partition: p\n"
        self.primary.edit({"lehr.yaml": content.encode(), **self.extra}, "edit")

    def opened(self) -> CompositeSource:
        def part(name: str, declared: DeclaredSource) -> Source:
            assert isinstance(declared, DirectoryPlace)
            return SimulatedSource(self.others[declared.directory], SystemClock(), 3600.0)

        return CompositeSource(SimulatedSource(self.primary, SystemClock(), 3600.0), part)


def declare(places: dict[str, str]) -> Edit:
    def edit(world: World) -> None:
        world.declared = places
        world.write()

    return edit


def change(name: str, path: str, content: bytes) -> Edit:
    return lambda world: world.others[name].edit({path: content, "file": content}, "change")


def add(path: str) -> Edit:
    def edit(world: World) -> None:
        world.extra = {path: b"mine"}
        world.write()

    return edit


def away(name: str, is_away: bool) -> Edit:
    def edit(world: World) -> None:
        repository = world.others.get(name, world.primary)
        repository.unreadable = is_away
        repository.announce()

    return edit


paths = st.sampled_from(["file", "deep/er", "lehr.yaml"])
edits = st.one_of(
    st.builds(declare, st.dictionaries(st.sampled_from(NAMES), st.sampled_from(NAMES))),
    st.builds(change, st.sampled_from(NAMES), paths, st.binary(max_size=3)),
    st.builds(add, st.sampled_from(["mine", "sources/mine", "sources/a/mine", "sources/b"])),
    st.builds(away, st.sampled_from((*NAMES, "the workspace")), st.booleans()),
)


def shown(source: CompositeSource) -> object:
    """All that a look at the source shows: files and revisions, or what is wrong."""
    try:
        snapshot: Snapshot = source.newest()
    except SourcesError as error:
        return [(item.code, item.subject, item.what) for item in error.diagnostics]
    except TransientError as error:
        return error.what
    files = {path: (entry, snapshot.read(path)) for path, entry in snapshot.files().items()}
    return files, revisions_of(snapshot)


@settings(max_examples=150)
@given(st.lists(st.lists(edits, min_size=1, max_size=4), max_size=6))
def test_what_is_followed_is_what_is_there(batches: list[list[Edit]]) -> None:
    async def play() -> None:
        world = World()
        followed = world.opened()
        shown(followed)
        hints = followed.changes()
        hint = asyncio.ensure_future(_next(hints))
        await listening()
        for batch in batches:
            for edit in batch:  # there may be several hints before anybody looks
                edit(world)
                await listening()
                if not hint.done():
                    world.primary.announce()  # of an edit to what is not declared nobody is told
                await asyncio.wait_for(hint, PATIENCE)
                hint = asyncio.ensure_future(_next(hints))
                await listening()
            after = shown(followed)
            for _ in range(5):
                await listening()
                if hint.done():
                    after = shown(followed)
                    hint = asyncio.ensure_future(_next(hints))
            assert after == shown(world.opened())
        hint.cancel()
        await asyncio.gather(hint, return_exceptions=True)

    asyncio.run(play())


async def listening() -> None:
    """Let whoever has just been asked for hints begin to listen to those who give them."""
    for _ in range(10):
        await asyncio.sleep(0)


async def _next(hints: object) -> None:
    await anext(hints)  # type: ignore[call-overload]
