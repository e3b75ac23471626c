"""Claims are taken before a push, and given up without ever breaking a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from lehr.base.errors import TransientError
from lehr.enforce.claims import give_up, take_before_push
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.sdk.claims import Conflict, Holder

KEY = AssetKey(Partition("shop"), AssetId("web"))


class Register:
    """`lehr.sdk.claims.Claims` that answers what it is told to."""

    def __init__(self, conflict: Conflict | None = None, *, broken: bool = False) -> None:
        self.conflict = conflict
        self.broken = broken
        self.asked: list[object] = []

    async def known(self, partition: Partition) -> bool:
        return True

    async def conflicts(
        self, partition: Partition, claims: Mapping[AssetId, Collection[str]]
    ) -> Sequence[Conflict]:
        return ()

    async def take(
        self, partition: Partition, claims: Mapping[AssetId, Collection[str]], *, only: bool
    ) -> Sequence[Conflict]:
        self.asked.append((partition, dict(claims), only))
        return () if self.conflict is None else (self.conflict,)

    async def take_free(self, partition: Partition, claims: Mapping[AssetId, Collection[str]]) -> None:
        pass

    async def release(self, partition: Partition, assets: Collection[AssetId]) -> None:
        if self.broken:
            raise TransientError("the disk is full")
        self.asked.append((partition, tuple(assets)))

    async def close(self) -> None:
        pass


def test_what_a_push_changes_is_taken_and_nothing_given_up_for_it() -> None:
    register = Register()
    assert asyncio.run(take_before_push(register, KEY, ("port:1",))) is None
    assert register.asked == [("shop", {"web": ("port:1",)}, False)]


def test_a_push_that_changes_nothing_that_can_be_claimed_asks_nobody() -> None:
    register = Register()
    assert asyncio.run(take_before_push(register, KEY, ())) is None
    assert not register.asked


def test_a_push_of_what_another_partition_holds_is_refused_and_says_whose_it_is() -> None:
    holder = Holder(Partition("blog"), "/state/blog", AssetId("motd"))
    register = Register(Conflict(KEY.id, "file:x", "path:/srv/x", holder))
    refused = asyncio.run(take_before_push(register, KEY, ("file:x",)))
    assert refused is not None
    assert refused.reason == "ClaimedElsewhere"
    assert refused.message == (
        "file x (that is, /srv/x) belongs to `motd` of partition blog, whose state is in /state/blog"
    )


def test_what_is_out_of_our_care_is_given_up() -> None:
    register = Register()
    asyncio.run(give_up(register, KEY))
    assert register.asked == [("shop", ("web",))]
    asyncio.run(give_up(Register(broken=True), KEY))


def test_a_push_into_a_protected_folder_is_refused() -> None:
    holder = Holder(KEY.partition, "/state", AssetId(""), ours=True)
    conflict = Conflict(KEY.id, "file:x", "path:/state/x", holder, "the state folder /state")
    refused = asyncio.run(take_before_push(Register(conflict), KEY, ("file:x",)))
    assert refused is not None
    assert refused.reason == "ProtectedPath"
    assert (
        refused.message
        == "file x (that is, /state/x) is in the state folder /state, where no asset may write"
    )
