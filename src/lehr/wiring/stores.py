"""Stores, and the registers of claims."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lehr.wiring.deployment import STATE_FILE, Deployment
from lehr.wiring.installed import calendars, known_types, protected

if TYPE_CHECKING:
    from lehr.http.questions import DryRuns, Installation
    from lehr.model.asset import Partition
    from lehr.model.types import Registry
    from lehr.sdk.store import CheckableStore, Store
    from lehr.store.claims import HostClaims, Register
    from lehr.store.postgres.claims import ClaimTable
    from lehr.store.sqlite.claims import ClaimFile


def open_store(state: Path, named: str | None = None, *, read_only: bool = False) -> CheckableStore:
    """The store of a state folder: `lehr.store.locations.store_of`."""
    from lehr.store.locations import store_of

    return store_of(state / STATE_FILE, named, read_only=read_only)


@contextlib.contextmanager
def empty_store() -> Iterator[CheckableStore]:
    """An empty temporary store, for queries without a state."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="lehr-") as folder:
        store = open_store(Path(folder))
        try:
            yield store
        finally:
            store.close()


def has_store(state: Path) -> bool:
    """Whether a state folder has a store, or knows where it is."""
    from lehr.store.locations import has_store

    return has_store(state / STATE_FILE)


def store_place(state: Path, named: str | None = None) -> str:
    """Where the store of a state folder is, for messages."""
    from lehr.store.locations import place_of

    return place_of(state / STATE_FILE, named)


def claims(deployment: Deployment, store_address: str | None = None) -> HostClaims:
    """Claims on this host, as seen by the control plane of `deployment`.

    Args:
        store_address: as in `parts`.
    """
    from lehr.store.registers import Registers

    registers = claim_registers(deployment.state, store_address)
    return _claims(deployment, store_address, Registers(registers))


def claims_to_look_at(deployment: Deployment, store_address: str | None = None) -> list[HostClaims]:
    """The same for commands that publish nothing: each register separately, since some may not exist.

    The first has no register, and knows only what paths themselves show.
    """
    from lehr.store.registers import Registers

    registers = claim_registers(deployment.state, store_address, read_only=True)
    return [_claims(deployment, store_address, register) for register in (Registers(()), *registers)]


def _claims(deployment: Deployment, store_address: str | None, register: Register) -> HostClaims:
    from lehr.base.short_calls import ShortCalls
    from lehr.store.claims import HostClaims

    # Two state folders with one store are one owner.
    store = store_place(deployment.state, store_address)
    return HostClaims(
        register,
        os.path.realpath(store) if store.startswith("/") else store,
        deployment.state,
        deployment.base,
        ShortCalls("claimed paths", 4),
        ShortCalls("claims", 1),
        protected=protected(deployment),
    )


def claim_registers(
    state: Path | None, store_address: str | None = None, *, read_only: bool = False
) -> list[ClaimFile | ClaimTable]:
    """The registers of claims of this host, in the order in which they are asked.

    This user's is first: it is the cheapest, and makes most refusals. The one in the store's database, if
    any, also has the claims of other users and other state homes.

    Args:
        state: the folder that may know where its store is; None for none.
    """
    import socket

    from lehr.control.state_folder import states
    from lehr.store.locations import is_gone, register_of
    from lehr.store.sqlite.claims import ClaimFile

    host = socket.gethostname()
    found: list[ClaimFile | ClaimTable] = [
        ClaimFile(
            states() / f"claims-{host}.sqlite",
            lambda place: not is_gone(Path(place) / STATE_FILE),
            read_only=read_only,
        )
    ]
    if state is not None or store_address is not None:
        table = register_of((state or Path()) / STATE_FILE, store_address, host, read_only=read_only)
        found += [] if table is None else [table]
    return found


def inert_in(store: Store, partition: Partition) -> Callable[[str], bool]:
    """Whether assets of a type have no production. The first call imports all types."""
    known: list[Registry] = []

    def inert(type: str) -> bool:
        if not known:
            known.append(registry_of(store, partition))
        return known[0].inert(type)

    return inert


def installation(state: Path, dry_runs: DryRuns) -> Installation:
    """Facts that an HTTP server knows besides the store of `state`."""
    from lehr.http.questions import Installation
    from lehr.sources.past import past_revision

    return Installation(
        inert_in, registry_of, lambda revision: past_revision(state, revision), calendars, dry_runs
    )


def registry_of(store: Store, partition: Partition, sequence: int | None = None) -> Registry:
    """All types of this installation, and those that an incarnation declares. The first call is slow.

    Args:
        sequence: of the incarnation; None for the newest.
    """
    from lehr.model.declared import TYPE, declared_type

    known, newest = known_types().copy(), store.intent.newest(partition)
    if newest is not None:
        at = newest.sequence if sequence is None else sequence
        known.declare(map(declared_type, store.intent.assets(partition, at, (TYPE,))))
    return known
