"""What is listed belongs to one incarnation, also while others are published."""

from __future__ import annotations

import asyncio

from lehr.base.digest import Digest
from lehr.enforce.in_force import as_of_newest
from lehr.model.asset import Partition
from lehr.model.incarnation import Incarnation

DIGEST = Digest("0" * 40)


def incarnation(sequence: int) -> Incarnation:
    return Incarnation(Partition("shop"), sequence, DIGEST, DIGEST, (), DIGEST, 0.0, 1)


def test_a_publication_in_between_has_all_of_it_read_again() -> None:
    published = 1

    async def newest() -> Incarnation:
        return incarnation(published)

    async def read(current: Incarnation) -> list[int]:
        nonlocal published
        before = published
        published = min(published + 1, 3)
        return [current.sequence, before, published]

    assert asyncio.run(as_of_newest(newest, read)) == (incarnation(3), [3, 3, 3])
