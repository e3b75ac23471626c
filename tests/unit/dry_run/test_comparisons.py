"""Which comparisons dry turns share: only those whose plugin would read the same again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

from lehr.base.errors import NeedError
from lehr.dry_run.comparisons import Comparisons
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.output_reads import OutputReads
from lehr.enforce.state import Diffed, DiffFailed
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.diff import Change, Diff, Goal, Target
from lehr.testing.world import PARTITION, THING, registry, thing

T = TypeVar("T")
A, B, C = map(AssetId, "abc")
TARGET = Target(PARTITION, A, THING, 3, Goal.PRESENT)
DIFFERS = Diff((Change("value", "new", "old"),))
CONTENT = thing("a", "1")


class Shelf:
    """Assets that are in memory once they were asked for."""

    def __init__(self, assets: Mapping[AssetId, Asset]) -> None:
        self._assets = assets
        self._near: set[AssetId] = set()
        self._looks = False

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        if self._looks:
            self._near.add(key.id)
        if key.id not in self._near:
            raise NeedError(key.id)
        return self._assets.get(key.id)

    async def run(self, look: Callable[[], T]) -> T:
        self._looks = True
        try:
            return look()
        finally:
            self._looks = False


def reader(**others: str) -> RecordingReader:
    """Reads `a`, and these other assets with these values."""
    found = {AssetId(id): thing(id, value) for id, value in others.items()}
    read = RecordingReader(Shelf(found), registry(), PARTITION, 3)
    read.know(CONTENT)
    return read


async def having_read(*ids: AssetId, **others: str) -> RecordingReader:
    read = reader(**others)
    for id in ids:
        await read.fetch(id)
        read.asset(id)
    return read


async def kept(*ids: AssetId, **others: str) -> Comparisons:
    """The comparison of an `a` whose plugin has read `ids`."""
    comparisons = Comparisons()
    read = await having_read(*ids, **others)
    comparisons.keep(TARGET, CONTENT, read, Diffed(DIFFERS, read.content_digest(CONTENT), ()))
    return comparisons


def test_the_same_is_compared_once_and_counts_as_having_read_the_same() -> None:
    async def main() -> None:
        comparisons = await kept(B, C, b="1")
        read = reader(b="1")
        found = await comparisons.find(TARGET, CONTENT, read)
        before = await having_read(B, C, b="1")
        assert found == Diffed(DIFFERS, before.content_digest(CONTENT), ())
        assert read.reads == before.reads

    asyncio.run(main())


@pytest.mark.parametrize("others", [{"b": "2"}, {}, {"b": "1", "c": "1"}])
def test_another_content_of_what_was_read_is_compared_again(others: dict[str, str]) -> None:
    async def main() -> None:
        read = reader(**others)
        assert await (await kept(B, C, b="1")).find(TARGET, CONTENT, read) is None
        assert set(read.reads) == {A}, "the plugin has read nothing yet"

    asyncio.run(main())


def test_each_content_of_what_was_read_has_its_own_comparison() -> None:
    async def main() -> None:
        comparisons = await kept(B, b="1")
        read = await having_read(B, b="2")
        other = Diff((Change("value", "newer", "old"),))
        comparisons.keep(TARGET, CONTENT, read, Diffed(other, read.content_digest(CONTENT), ()))
        found = [await comparisons.find(TARGET, CONTENT, reader(b=value)) for value in "12"]
        assert [item.diff for item in found if item is not None] == [DIFFERS, other]

    asyncio.run(main())


def test_another_target_is_compared_again() -> None:
    async def main() -> None:
        comparisons = await kept()
        for target in (
            Target(PARTITION, A, THING, 4, Goal.PRESENT),
            Target(PARTITION, A, THING, 3, Goal.ABSENT),
        ):
            assert await comparisons.find(target, CONTENT, reader()) is None
        assert await comparisons.find(TARGET, CONTENT, reader()) is not None

    asyncio.run(main())


def test_failures_and_what_rests_on_outputs_are_never_shared() -> None:
    async def main() -> None:
        comparisons = Comparisons()
        comparisons.keep(TARGET, CONTENT, reader(), DiffFailed("refused"))
        read = reader()
        read.outputs = OutputReads(lambda asset: pytest.fail("nothing observes"))
        comparisons.keep(TARGET, CONTENT, read, Diffed(DIFFERS, CONTENT.digest, ()))
        assert await comparisons.find(TARGET, CONTENT, reader()) is None

    asyncio.run(main())
