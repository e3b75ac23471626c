"""What is asked of etcd: its JSON gateway, over HTTP."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

import msgspec

from etcd_operator.plan import Member
from lehr.base.errors import LehrError, TransientError

_ASK_SECONDS = 2.0
_CHANGE_SECONDS = 8.0
"""etcd itself gives a change up after 7 seconds."""

_KEY = base64.b64encode(b"\0").decode()

_REFUSALS = (
    "unhealthy cluster",
    "not enough started members",
    "in sync with leader",
    "member not found",
    "Peer URLs already exists",
    "ID already exists",
    "too many learner",
    "not a learner",
)
"""Answers after which nothing has happened, nor will. After any other error it may have."""


class RefusedError(LehrError):
    """etcd has refused a change of its members: nothing was changed."""


class Answer(msgspec.Struct, frozen=True):
    """What a voter says that has just seen all that its cluster ever agreed on.

    Attributes:
        member: id of who answers.
        applied: how much it has seen; of two answers, the one with more is the newer.
    """

    cluster: int
    member: int
    leader: int
    applied: int
    members: tuple[Member, ...]


class Etcd(Protocol):
    """A cluster, asked through the member in one of its slots."""

    async def ask(self, slot: int) -> Answer:
        """What the member in `slot` says.

        Raises:
            TransientError: it does not answer, does not vote, or has no quorum behind it.
        """
        ...

    async def add(self, via: int, slot: int) -> None:
        """Add a learner in `slot`.

        Raises:
            RefusedError: nothing was changed.
            TransientError: it is not known whether anything was, or will be.
        """
        ...

    async def promote(self, via: int, id: int) -> None:
        """Let a learner vote. Raises as `add`."""
        ...

    async def remove(self, via: int, id: int) -> None:
        """Remove a member. Raises as `add`."""
        ...


def peer_url(base: int, slot: int) -> str:
    """Where the other members find the one in `slot`. `base` is the cluster's first port."""
    return f"http://127.0.0.1:{peer_port(base, slot)}"


def peer_port(base: int, slot: int) -> int:
    """The port of that."""
    return base + 2 * slot


def client_port(base: int, slot: int) -> int:
    """Where clients find it."""
    return base + 2 * slot + 1


class Gateway:
    """Implements `Etcd` over the gateway that etcd has built in.

    Args:
        base: the cluster's first port.
    """

    def __init__(self, base: int) -> None:
        self._base = base

    async def ask(self, slot: int) -> Answer:
        # A member's own list of members may be old. So it has to read first, which it can only once it has
        # applied all that was agreed on before.
        async with _within(_ASK_SECONDS):
            await self._post(slot, "kv/range", {"key": _KEY, "limit": "1"})
            status = await self._post(slot, "maintenance/status", {})
            listed = await self._post(slot, "cluster/member/list", {})
        head = listed["header"]
        return Answer(
            int(head["cluster_id"]),
            int(head["member_id"]),
            int(status.get("leader", 0)),
            int(status.get("raftAppliedIndex", 0)),
            tuple(map(self._member, listed["members"])),
        )

    async def add(self, via: int, slot: int) -> None:
        await self._change(
            via, "cluster/member/add", {"peerURLs": [peer_url(self._base, slot)], "isLearner": True}
        )

    async def promote(self, via: int, id: int) -> None:
        await self._change(via, "cluster/member/promote", {"ID": str(id)})

    async def remove(self, via: int, id: int) -> None:
        await self._change(via, "cluster/member/remove", {"ID": str(id)})

    async def _change(self, via: int, path: str, content: dict[str, Any]) -> None:
        async with _within(_CHANGE_SECONDS):
            await self._post(via, path, content)

    def _member(self, found: dict[str, Any]) -> Member:
        port = int(found["peerURLs"][0].rpartition(":")[2])
        slot = (port - self._base) // 2
        return Member(int(found["ID"]), slot, found.get("name", ""), found.get("isLearner", False))

    async def _post(self, slot: int, path: str, content: dict[str, Any]) -> dict[str, Any]:
        port = client_port(self._base, slot)
        body = msgspec.json.encode(content)
        head = f"POST /v3/{path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(head.encode() + body)
                answer = await reader.read()
            finally:
                writer.close()
            status, _, _rest = answer.partition(b"\r\n")
            found: dict[str, Any] = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])
        except (OSError, msgspec.DecodeError) as error:
            raise TransientError(f"the member at port {port} does not answer", why=str(error)) from error
        if status.split()[1:2] == [b"200"]:
            return found
        said = str(found.get("error", status))
        kind = RefusedError if any(refusal in said for refusal in _REFUSALS) else TransientError
        raise kind(f"the member at port {port} does not do it", why=said)


@contextlib.asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """As `asyncio.timeout`, but it is a `TransientError` that time is up."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise TransientError("there was no answer in time") from error
