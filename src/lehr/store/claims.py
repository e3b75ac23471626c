"""Claims of one host: resolves their names, asks the register, and bounds the time that both take.

In: claims as types write them. Out: conflicts. The registers themselves (`lehr.store.sqlite.claims`,
`lehr.store.postgres.claims`) hold only real names and their owners.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.errors import TransientError
from lehr.base.findings import Findings
from lehr.base.gathered import Gathered
from lehr.base.log import Log
from lehr.base.real_paths import real_entry, real_target
from lehr.base.text import writable
from lehr.model.asset import AssetId, Partition
from lehr.sdk.claims import Conflict, Holder
from lehr.sdk.protected import Protected

log = Log()

T = TypeVar("T")

_RESOLVE_SECONDS = 5.0
_REGISTER_SECONDS = 15.0
"""Longer than a register takes to notice that it is locked or unreachable. After that, it hangs."""

Resolved = Mapping[AssetId, Mapping[str, str]]
"""By asset: its claims as written, by real name."""


class Owner(msgspec.Struct, frozen=True):
    """A partition of one store.

    Attributes:
        store: identifies the store, wherever its control plane runs.
        state: the state folder, for messages, and to detect that it is gone.
    """

    store: str
    partition: Partition
    state: str


class Claimed(msgspec.Struct, frozen=True):
    """A thing in production, by its real name, and its holder."""

    name: str
    holder: Holder


class Register(Protocol):
    """Real names of things in production, and their holders. Every method is one transaction.

    Names of an owner that is gone count as free. One call at a time.
    """

    def known(self, owner: Owner) -> bool:
        """Whether `owner` holds anything."""
        ...

    def holders(self, owner: Owner, names: Collection[str]) -> dict[str, Holder]:
        """The holder of each of `names` that is held; `ours` as seen by `owner`."""
        ...

    def holding(self, owner: Owner, names: Mapping[AssetId, Collection[str]]) -> set[AssetId]:
        """The assets that hold their `names` and nothing else."""
        ...

    def take(
        self,
        owner: Owner,
        names: Mapping[AssetId, Collection[str]],
        *,
        only: bool,
        free: bool,
        over: Collection[AssetId] = (),
    ) -> dict[str, Holder]:
        """Take all of `names`, or none if another asset or owner holds one; returns those holders.

        Names pass between this owner's assets in `names`. Every other asset keeps its names.

        Args:
            only: release any other names of the assets.
            free: take the free ones even so.
            over: assets of this owner that do not keep their names.
        """
        ...

    def assets(self, owner: Owner) -> set[AssetId]:
        """The assets of `owner` that hold anything."""
        ...

    def moved(self, owner: Owner) -> set[AssetId]:
        """The assets of `owner` that may hold more than they took last."""
        ...

    def release(self, owner: Owner, names: Mapping[AssetId, Collection[str] | None]) -> None:
        """Release names of these assets: `names`, or all (None)."""
        ...

    def close(self) -> None:
        """Close open files or connections. They are reopened when next needed."""
        ...


def refused(
    holders: Mapping[str, Holder], assets: Collection[AssetId], over: Collection[AssetId]
) -> dict[str, Holder]:
    """The holders that block names for these assets; `over` as in `Register.take`."""
    yielding = {*assets, *over}
    return {
        name: holder for name, holder in holders.items() if not (holder.ours and holder.asset in yielding)
    }


def holding(rows: Iterable[tuple[str, str]], names: Mapping[AssetId, Collection[str]]) -> set[AssetId]:
    """As `Register.holding`, where `rows` are all names that these assets hold: (asset, name)."""
    held: dict[str, set[str]] = {}
    for asset, name in rows:
        held.setdefault(asset, set()).add(name)
    return {id for id, claimed in names.items() if held.get(id, set()) == set(claimed)}


def real_name(claim: str, base: Path, realpath: Callable[[str], str] = os.path.realpath) -> str:
    """The real name of `claim` on this host: links in paths are resolved, relative paths are below `base`.

    Files are replaced by a rename, so a link at the end of a path is replaced, not followed.

    Args:
        realpath: as for `real_entry`.
    """
    kind, _, name = claim.partition(":")
    match kind:
        case "file":
            return f"path:{real_entry(base / name, realpath)}"
        case "folder":
            return f"path:{real_target(base / name)}"
        case "database" if name.startswith("sqlite:"):
            path, _, schema = name.removeprefix("sqlite:").rpartition("/")
            return f"database:sqlite:{real_target(base / path)}/{schema}"
    return claim


def _path_in(name: str) -> str | None:
    """The path in a real name; None if it is not a file."""
    kind, _, path = name.partition(":")
    if kind == "database" and path.startswith("sqlite:"):
        return path.removeprefix("sqlite:").rpartition("/")[0]
    return path if kind == "path" else None


def _as_written(claim: str, base: Path) -> str:
    """The same without reading the disk."""
    kind, _, name = claim.partition(":")
    return f"path:{os.path.normpath(base / name)}" if kind in ("file", "folder") else claim


class _Seen:
    """Findings about paths.

    Attributes:
        folders: as `seen` of `Protected.why`.
        realpath: resolves the links of a folder.
    """

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}
        self.realpath: Callable[[str], str] = functools.cache(os.path.realpath)


class HostClaims:
    """`lehr.sdk.claims.Claims` over a register.

    Args:
        store: as in `Owner`.
        base: folder that relative paths in intent start from.
        resolving: runs look-ups of paths, which hang if a mount does.
        protected: folders that no claim may lead into.
        blocking: runs calls of the register, in one thread.
    """

    def __init__(
        self,
        register: Register,
        store: str,
        state: Path,
        base: Path,
        resolving: Blocking,
        blocking: Blocking,
        protected: Protected | None = None,
    ) -> None:
        self._register = register
        self._store = store
        self._state = os.path.realpath(state)
        self._base = base
        self._resolving = resolving
        self._blocking = blocking
        self._protected = protected or Protected({})
        self._findings = Findings(_Seen)
        self._holding: dict[Partition, Gathered[Resolved, bool]] = {}

    def _owner(self, partition: Partition) -> Owner:
        return Owner(self._store, partition, self._state)

    async def known(self, partition: Partition) -> bool:
        return await _in_time(self._blocking.run(self._register.known, self._owner(partition)))

    async def conflicts(
        self, partition: Partition, claims: Mapping[AssetId, Collection[str]]
    ) -> Sequence[Conflict]:
        owner = self._owner(partition)
        resolved, forbidden = await self._looked_at(owner, claims)
        names = {name for names in resolved.values() for name in names}
        holders = await _in_time(self._blocking.run(self._register.holders, owner, sorted(names)))
        # Our assets may hold less than before: those in this call claim again.
        before = {name for name, holder in holders.items() if holder.ours and holder.asset in claims}
        found = _conflicts(resolved, {name: holders[name] for name in holders.keys() - before})
        return [*forbidden, *found, *_among(resolved, owner)]

    async def take(
        self,
        partition: Partition,
        claims: Mapping[AssetId, Collection[str]],
        *,
        only: bool,
        over: Collection[AssetId] = (),
    ) -> Sequence[Conflict]:
        owner = self._owner(partition)
        resolved, forbidden = await self._looked_at(owner, claims)
        if forbidden or (not only and await self._hold(owner, resolved)):
            return forbidden
        return await self._take(owner, resolved, only=only, free=False, over=over)

    async def take_free(self, partition: Partition, claims: Mapping[AssetId, Collection[str]]) -> None:
        await self._take(self._owner(partition), await self._resolved(claims), only=False, free=True)

    async def _hold(self, owner: Owner, resolved: Resolved) -> bool:
        """Whether the assets hold just that, as nearly every asset does before a push."""
        asking = self._holding.get(owner.partition)
        if asking is None:
            asking = Gathered(lambda asked: self._all_hold(owner, asked))
            self._holding[owner.partition] = asking
        return await _in_time(asking.ask(resolved))

    async def _all_hold(self, owner: Owner, asked: Sequence[Resolved]) -> Sequence[bool]:
        names: dict[AssetId, set[str]] = {}
        for resolved in asked:
            for id, claimed in resolved.items():
                names.setdefault(id, set()).update(claimed)
        found = await self._blocking.run(self._register.holding, owner, names)
        return [found >= resolved.keys() for resolved in asked]

    async def _take(
        self, owner: Owner, resolved: Resolved, *, only: bool, free: bool, over: Collection[AssetId] = ()
    ) -> Sequence[Conflict]:
        names = {id: tuple(names) for id, names in resolved.items()}
        taking = self._blocking.run(self._register.take, owner, names, only=only, free=free, over=over)
        return _conflicts(resolved, await _in_time(taking))

    async def assets(self, partition: Partition) -> Collection[AssetId]:
        return await _in_time(self._blocking.run(self._register.assets, self._owner(partition)))

    async def moved(self, partition: Partition) -> Collection[AssetId]:
        return await _in_time(self._blocking.run(self._register.moved, self._owner(partition)))

    async def release(self, partition: Partition, assets: Collection[AssetId]) -> None:
        names = dict.fromkeys(assets)
        await _in_time(self._blocking.run(self._register.release, self._owner(partition), names))

    async def close(self) -> None:
        try:
            await self._blocking.run(self._register.close)
        finally:
            self._blocking.close()
            self._resolving.close()

    async def _looked_at(
        self, owner: Owner, claims: Mapping[AssetId, Collection[str]]
    ) -> tuple[Resolved, list[Conflict]]:
        """Real names, and which of them lead into Lehr's state or a git repository.

        Raises:
            TransientError: resolving takes too long.
        """
        began = self._findings.begin()

        def look() -> tuple[Resolved, list[Conflict]]:
            seen = self._findings.of(began)
            resolved = self._all(claims, seen.realpath)
            return _written(resolved), self._into_protected(owner, resolved, seen.folders)

        try:
            async with asyncio.timeout(_patience(claims)):
                return await self._resolving.run(look)  # in one call: each hand-over to a thread costs 70 us
        except TimeoutError as error:
            raise TransientError(
                "the paths that assets claim cannot be resolved",
                code="STO104",
                why=f"a file system did not answer within {_RESOLVE_SECONDS:g} s",
                fix="check the file systems that are mounted there; Lehr retries automatically",
            ) from error

    def _into_protected(self, owner: Owner, resolved: Resolved, seen: dict[str, str]) -> list[Conflict]:
        holder = Holder(owner.partition, owner.state, AssetId(""), ours=True)
        return [
            Conflict(id, claim, _text(name), holder, _text(why))
            for id, names in resolved.items()
            for name, claim in names.items()
            if (path := _path_in(name)) is not None
            and (why := self._protected.why(path, entry=not claim.startswith("folder:"), seen=seen))
        ]

    async def _resolved(self, claims: Mapping[AssetId, Collection[str]]) -> Resolved:
        """Real names; names as written if reading the disk takes too long."""
        try:
            async with asyncio.timeout(_patience(claims)):
                return _written(await self._resolving.run(self._all, claims, os.path.realpath))
        except TimeoutError:
            log.warning("claims are compared as written: resolving their paths takes too long")
            return {
                id: {_as_written(claim, self._base): claim for claim in claimed}
                for id, claimed in claims.items()
            }

    def _all(self, claims: Mapping[AssetId, Collection[str]], realpath: Callable[[str], str]) -> Resolved:
        return {
            id: {real_name(claim, self._base, realpath): claim for claim in claimed}
            for id, claimed in claims.items()
        }


def _written(resolved: Resolved) -> Resolved:
    """The same with names that a register can hold: folder names may not be valid text."""
    return {id: {_text(name): claim for name, claim in names.items()} for id, names in resolved.items()}


def _text(name: str) -> str:
    return writable(name, len(name))


def _patience(claims: Mapping[AssetId, Collection[str]]) -> float:
    """Seconds that resolving the paths of these claims may take."""
    return _RESOLVE_SECONDS + len(claims) / 1000


async def _in_time(asking: Awaitable[T]) -> T:
    """The result of a register call, or an error if it hangs: callers can report why."""
    try:
        async with asyncio.timeout(_REGISTER_SECONDS):
            return await asking
    except TimeoutError as error:
        raise TransientError(
            "the register of claims does not answer",
            code="STO105",
            why=f"{_REGISTER_SECONDS:g} s have passed",
            fix="check the disk or the server that it is on; Lehr retries automatically",
        ) from error


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
