"""The register of claims of one host: what is resolved, by whom it is asked, and how long it may take.

In: claims as types word them. Out: conflicts. The register itself (`lehr.store.sqlite.claims`) holds only
real names, and whose they are.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from lehr.base.blocking import Blocking
from lehr.base.real_paths import real_entry, real_target
from lehr.model.asset import AssetId, Partition
from lehr.sdk.claims import Conflict, Holder
from lehr.sdk.protected import Protected

log = structlog.get_logger()

_RESOLVE_SECONDS = 5.0

Resolved = Mapping[AssetId, Mapping[str, str]]
"""By asset: its claims as it words them, by real name."""


class Owner(msgspec.Struct, frozen=True):
    """A partition of one store.

    Attributes:
        store: tells stores apart, wherever their control plane runs from.
        state: the state folder, for people, and to find out that it is gone.
    """

    store: str
    partition: Partition
    state: str


class Claimed(msgspec.Struct, frozen=True):
    """A thing in production, by its real name, and who holds it."""

    name: str
    holder: Holder


class Register(Protocol):
    """Real names of things in production, and who holds them. Every method is one transaction.

    What belongs to an owner whose state is gone counts as free. One call at a time.
    """

    def known(self, owner: Owner) -> bool:
        """Whether `owner` holds anything."""
        ...

    def holders(self, owner: Owner, names: Collection[str]) -> dict[str, Holder]:
        """Who holds each of `names` that somebody holds; `ours` as seen by `owner`."""
        ...

    def take(
        self, owner: Owner, names: Mapping[AssetId, Collection[str]], *, only: bool, free: bool
    ) -> dict[str, Holder]:
        """Take `names` unless another owner holds one, which is the answer; then none is taken.

        Args:
            only: release what else the assets hold.
            free: take those that are free all the same.
        """
        ...

    def release(self, owner: Owner, assets: Collection[AssetId]) -> None:
        """Give up what these assets hold."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


def real_name(claim: str, base: Path) -> str:
    """What `claim` names on this host: links of paths are resolved, and relative ones are below `base`.

    A file is replaced by a rename, so that a link at the end of its path is replaced, and not followed.
    """
    kind, _, name = claim.partition(":")
    match kind:
        case "file":
            return f"path:{real_entry(base / name)}"
        case "folder":
            return f"path:{real_target(base / name)}"
        case "database" if name.startswith("sqlite:"):
            path, _, schema = name.removeprefix("sqlite:").rpartition("/")
            return f"database:sqlite:{real_target(base / path)}/{schema}"
    return claim


def _path_in(name: str) -> str | None:
    """The path that a real name holds; None for what is no file."""
    kind, _, path = name.partition(":")
    if kind == "database" and path.startswith("sqlite:"):
        return path.removeprefix("sqlite:").rpartition("/")[0]
    return path if kind == "path" else None


def _as_written(claim: str, base: Path) -> str:
    """The same without a look at the disk."""
    kind, _, name = claim.partition(":")
    return f"path:{os.path.normpath(base / name)}" if kind in ("file", "folder") else claim


class HostClaims:
    """`lehr.sdk.claims.Claims` over a register.

    Args:
        store: as in `Owner`.
        base: what relative paths in intent are relative to.
        resolving: runs what looks at paths, which hangs where a mount does.
        protected: folders that no claim may lead into.
        blocking: runs what asks the register, in one thread.
    """

    def __init__(
        self,
        register: Register,
        store: str,
        state: Path,
        base: Path,
        resolving: Blocking,
        blocking: Blocking,
        real_name: Callable[[str, Path], str] = real_name,
        protected: Protected | None = None,
    ) -> None:
        self._register = register
        self._store = store
        self._state = os.path.realpath(state)
        self._base = base
        self._resolving = resolving
        self._blocking = blocking
        self._real_name = real_name
        self._protected = protected or Protected({})

    def _owner(self, partition: Partition) -> Owner:
        return Owner(self._store, partition, self._state)

    async def known(self, partition: Partition) -> bool:
        return await self._blocking.run(self._register.known, self._owner(partition))

    async def conflicts(
        self, partition: Partition, claims: Mapping[AssetId, Collection[str]]
    ) -> Sequence[Conflict]:
        resolved = await self._resolved(claims)
        names = {name for names in resolved.values() for name in names}
        owner = self._owner(partition)
        holders = await self._blocking.run(self._register.holders, owner, sorted(names))
        # What an asset of ours held, it may hold no more: those that are asked about now say it anew.
        before = {name for name, holder in holders.items() if holder.ours and holder.asset in claims}
        found = _conflicts(resolved, {name: holders[name] for name in holders.keys() - before})
        return [*await self._forbidden(owner, resolved), *found, *_among(resolved, owner)]

    async def take(
        self, partition: Partition, claims: Mapping[AssetId, Collection[str]], *, only: bool
    ) -> Sequence[Conflict]:
        return await self._take(partition, claims, only=only, free=False)

    async def take_free(self, partition: Partition, claims: Mapping[AssetId, Collection[str]]) -> None:
        await self._take(partition, claims, only=False, free=True)

    async def _take(
        self, partition: Partition, claims: Mapping[AssetId, Collection[str]], *, only: bool, free: bool
    ) -> Sequence[Conflict]:
        resolved = await self._resolved(claims)
        names = {id: tuple(names) for id, names in resolved.items()}
        owner = self._owner(partition)
        if not free and (forbidden := await self._forbidden(owner, resolved)):
            return forbidden
        return _conflicts(
            resolved, await self._blocking.run(self._register.take, owner, names, only=only, free=free)
        )

    async def release(self, partition: Partition, assets: Collection[AssetId]) -> None:
        await self._blocking.run(self._register.release, self._owner(partition), assets)

    async def _forbidden(self, owner: Owner, resolved: Resolved) -> list[Conflict]:
        """Claims that lead into Lehr's state or a git repository."""
        async with asyncio.timeout(_RESOLVE_SECONDS + len(resolved) / 1000):
            return await self._resolving.run(self._into_protected, owner, resolved)

    def _into_protected(self, owner: Owner, resolved: Resolved) -> list[Conflict]:
        holder = Holder(owner.partition, owner.state, AssetId(""), ours=True)
        seen: dict[str, str] = {}
        return [
            Conflict(id, claim, name, holder, why)
            for id, names in resolved.items()
            for name, claim in names.items()
            if (path := _path_in(name)) is not None
            and (why := self._protected.why(path, entry=not claim.startswith("folder:"), seen=seen))
        ]

    async def _resolved(self, claims: Mapping[AssetId, Collection[str]]) -> Resolved:
        """Real names; where a look at the disk takes too long, names as they are written."""
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS + len(claims) / 1000):
                return await self._resolving.run(self._all, claims, self._real_name)
        except TimeoutError:
            log.warning("claims are compared as written: a look at their paths takes too long")
            return self._all(claims, _as_written)

    def _all(
        self, claims: Mapping[AssetId, Collection[str]], name_of: Callable[[str, Path], str]
    ) -> Resolved:
        return {
            id: {name_of(claim, self._base): claim for claim in claimed} for id, claimed in claims.items()
        }


def _conflicts(resolved: Resolved, holders: Mapping[str, Holder]) -> list[Conflict]:
    return [
        Conflict(id, claim, name, holder)
        for id, names in resolved.items()
        for name, claim in names.items()
        if (holder := holders.get(name)) is not None and not (holder.ours and holder.asset == id)
    ]


def _among(resolved: Resolved, owner: Owner) -> list[Conflict]:
    """Assets that claim the same thing by different names."""
    first: dict[str, AssetId] = {}
    found = []
    for id, names in resolved.items():
        for name, claim in names.items():
            other = first.setdefault(name, id)
            if other != id:
                holder = Holder(owner.partition, owner.state, other, ours=True)
                found.append(Conflict(id, claim, name, holder))
    return found
