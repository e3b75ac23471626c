"""Claims are taken before a push, and given up without ever breaking a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from lehr.base.errors import TransientError
from lehr.enforce.claims import ClaimReleaser, PushRefusal, take_before_push
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.reason import Reason
from lehr.sdk.claims import Conflict, Holder

KEY = AssetKey(Partition("shop"), AssetId("web"))


class Register:
    """`lehr.sdk.claims.Claims` that answers what it is told to.

    Attributes:
        conflict: what keeps claims from being taken, unless they are taken over.
        held: assets that hold anything.
        broken: True while nothing can be released.
    """

    def __init__(self, conflict: Conflict | None = None, held: Collection[str] = ()) -> None:
        self.conflict = conflict
        self.held = {AssetId(id) for id in held}
        self.broken = False
        self.asked: list[object] = []
        self.meanwhile: Callable[[], object] = lambda: None

    async def known(self, partition: Partition) -> bool:
        return True

    async def conflicts(
        self, partition: Partition, claims: Mapping[AssetId, Collection[str]]
    ) -> Sequence[Conflict]:
        return ()

    async def take(
        self,
        partition: Partition,
        claims: Mapping[AssetId, Collection[str]],
        *,
        only: bool,
        over: Collection[AssetId] = (),
    ) -> Sequence[Conflict]:
        self.asked.append((partition, dict(claims), only, *over))
        return () if self.conflict is None or self.conflict.holder.asset in over else (self.conflict,)

    async def take_free(self, partition: Partition, claims: Mapping[AssetId, Collection[str]]) -> None:
        pass

    async def moved(self, partition: Partition) -> Collection[AssetId]:
        return ()

    async def assets(self, partition: Partition) -> Collection[AssetId]:
        if self.broken:
            raise TransientError("the disk is full")
        return frozenset(self.held)

    async def release(self, partition: Partition, assets: Collection[AssetId]) -> None:
        if self.broken:
            raise TransientError("the disk is full")
        self.held -= set(assets)
        self.asked.append((partition, tuple(assets)))
        self.meanwhile()

    async def close(self) -> None:
        pass


def always(answer: bool) -> Callable[[object], Awaitable[bool]]:
    async def asked(_what: object) -> bool:
        return answer

    return asked


def before_push(register: Register, *claims: str, still: bool = True) -> PushRefusal | None:
    return asyncio.run(take_before_push(register, KEY, claims, always(still)))


def test_what_a_push_changes_is_taken_and_nothing_given_up_for_it() -> None:
    register = Register()
    assert before_push(register, "port:1") is None
    assert register.asked == [("shop", {"web": ("port:1",)}, False)]


def test_a_push_that_changes_nothing_that_can_be_claimed_asks_nobody() -> None:
    register = Register()
    assert before_push(register) is None
    assert not register.asked


def test_a_push_of_what_another_partition_holds_is_refused_and_says_whose_it_is() -> None:
    holder = Holder(Partition("blog"), "/state/blog", AssetId("motd"))
    kept = before_push(Register(Conflict(KEY.id, "file:x", "path:/srv/x", holder)), "file:x", still=False)
    assert kept is not None
    assert kept.refused.reason == Reason.CLAIMED_ELSEWHERE
    for fact in ("file x", "/srv/x", "`motd`", "partition blog", "/state/blog"):
        assert fact in kept.refused.message
    assert kept.wait_for == ()


def test_a_push_of_what_another_asset_still_holds_is_refused_and_waits_for_it() -> None:
    holder = Holder(KEY.partition, "/state", AssetId("old"), ours=True)
    register = Register(Conflict(KEY.id, "file:x", "file:x", holder))
    kept = before_push(register, "file:x")
    assert kept is not None
    assert (kept.refused.reason, kept.wait_for) == (Reason.CLAIMED_HERE, ("old",))
    assert "file x" in kept.refused.message
    assert "`old`" in kept.refused.message
    assert before_push(register, "file:x", still=False) is None
    assert register.asked[-1] == ("shop", {"web": ("file:x",)}, False, "old"), "it is taken over"


def test_what_is_out_of_our_care_is_given_up() -> None:
    register = Register(held=["web"])
    asyncio.run(ClaimReleaser(register, KEY.partition, always(True)).release(KEY.id))
    assert register.asked == [("shop", ("web",))]


def test_what_could_not_be_given_up_is_given_up_later() -> None:
    register = Register(held=["web", "left by a crash"])
    register.broken = True
    giving = ClaimReleaser(register, KEY.partition, always(True))
    asyncio.run(giving.release(KEY.id))
    assert register.held == {"web", "left by a crash"}
    register.broken = False
    asyncio.run(giving.settle())
    assert not register.held
    asked = len(register.asked)
    asyncio.run(giving.settle())
    assert len(register.asked) == asked, "it is done once"


def test_what_is_published_again_keeps_its_claims() -> None:
    register = Register(held=["web", "db"])
    gone = {KEY.id}

    async def is_gone(id: AssetId) -> bool:
        return id in gone

    giving = ClaimReleaser(register, KEY.partition, is_gone)
    register.broken = True
    asyncio.run(giving.release(KEY.id))
    register.broken = False
    gone.clear()
    asyncio.run(giving.settle())
    assert register.held == {"web", "db"}


def test_what_leaves_while_others_are_given_up_is_given_up_too() -> None:
    register = Register(held=["web"])
    giving = ClaimReleaser(register, KEY.partition, always(True))

    async def both() -> None:
        await giving.settle()
        register.held = {AssetId("a"), AssetId("b")}
        register.meanwhile = lambda: giving._owed.setdefault(AssetId("b"))
        await giving.release(AssetId("a"))

    asyncio.run(both())
    assert not register.held


def test_a_push_into_a_protected_folder_is_refused() -> None:
    holder = Holder(KEY.partition, "/state", AssetId(""), ours=True)
    conflict = Conflict(KEY.id, "file:x", "path:/state/x", holder, "the state folder /state")
    kept = before_push(Register(conflict), "file:x", still=False)
    assert kept is not None
    assert kept.refused.reason == Reason.PROTECTED_PATH
    assert (
        kept.refused.message
        == "file x (that is, /state/x) is in the state folder /state, where no asset may write"
    )
