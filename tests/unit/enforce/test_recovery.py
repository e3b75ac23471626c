"""What is recovered belongs to one incarnation, also while others are published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from lehr.base.digest import Digest
from lehr.enforce.recovery import as_of_newest
from lehr.model.asset import Partition
from lehr.model.incarnation import Incarnation
from lehr.sdk.store import StoredIntent

PARTITION = Partition("shop")
DIGEST = Digest("0" * 40)


def incarnation(sequence: int) -> Incarnation:
    return Incarnation(PARTITION, sequence, DIGEST, DIGEST, (), DIGEST, 0.0, 1)


class Published:
    """Intent of which each reading of heads sees the next incarnation published, up to the third."""

    def __init__(self) -> None:
        self.sequence = 1

    def newest(self, partition: object) -> Incarnation:
        return incarnation(self.sequence)

    def heads(self) -> Iterator[int]:
        yield self.sequence
        self.sequence = min(self.sequence + 1, 3)
        yield self.sequence


def test_a_publication_while_heads_are_read_has_them_read_again() -> None:
    intent = Published()
    newest, heads = as_of_newest(cast(StoredIntent, intent), PARTITION, lambda: list(intent.heads()))
    assert newest == incarnation(3)
    assert heads == [3, 3]
