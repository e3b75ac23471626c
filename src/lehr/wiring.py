"""The one place that chooses concrete sources, stores, plugins and checks.

Third parties add theirs with entry points, which `pip install` registers:

| group | names a function | that returns |
|---|---|---|
| `lehr.types` | `() ->` | an iterable of `lehr.model.types.AssetType` and `AddonType` |
| `lehr.plugins` | `(lehr.wiring.Deployment) ->` | a `lehr.sdk.plugin.AssetPlugin` |
| `lehr.checks` | `() ->` | a `lehr.sdk.check.CheckPlugin` |

Imports are inside the functions, because commands that only read must not pay for them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from lehr.control.mirror_upkeep import Tidying
    from lehr.control.plane import Parts
    from lehr.model.asset import Asset
    from lehr.model.declared_sources import PartitionPlace, SqlPlace
    from lehr.model.incarnation import SourceRevision
    from lehr.model.types import Registry
    from lehr.query.joined import Past
    from lehr.sdk.check import CheckPlugin
    from lehr.sdk.generation import Generation
    from lehr.sdk.plugin import AssetPlugin
    from lehr.sdk.protected import Protected
    from lehr.sdk.secrets import Secrets
    from lehr.sdk.source import Rows
    from lehr.sdk.store import CheckableStore
    from lehr.sdk.validator import DatabaseRule, LookUp
    from lehr.sources import CompositeSource, DirectorySource, GitSource
    from lehr.store.claims import HostClaims, Register
    from lehr.store.postgres.claims import ClaimTable
    from lehr.store.sqlite.claims import ClaimFile

STATE_FILE = "state.sqlite"
MEMO_FILE = "generate/memo.sqlite"


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that are not intent: where things are on this machine.

    Attributes:
        location: the source, as `lehr.sources.open_source` reads it.
        state: folder for everything that Lehr itself keeps.
        base: folder that relative paths in intent are relative to.
        kind, branch, path: of the source, if `location` does not set them.
        poll: maximum seconds between two checks of the source; None for the kind's default.
        lender: another state folder, which is only read: declared sources that it has are not fetched.
        exact: a commit that is checked out without a branch may be read, once.
        signed_by: file of public keys, one of which must have signed the newest commit; None to require no
            signature. It is not intent: anyone who may change intent could change it.
        retain, retain_seconds: newest incarnations, and age of what a run does not prune; 0 seconds to prune
            nothing.
    """

    location: str
    state: Path
    base: Path
    kind: Literal["git", "directory"] | None = None
    branch: str | None = None
    path: str = ""
    poll: float | None = None
    lender: Path | None = None
    signed_by: Path | None = None
    retain: int = 1000
    retain_seconds: float = 90 * 86_400.0
    exact: bool = False


def registry() -> Registry:
    """All types that this installation knows.

    Raises:
        StalledError: those of an installed package cannot be used. Without them the meaning of its assets is
            unknown.
    """
    from lehr.checks import TYPES as CHECK_TYPES
    from lehr.model.addons import ADDONS
    from lehr.model.governance import GOVERNANCE_TYPES
    from lehr.model.types import Registry
    from lehr.plugins.balancer.payload import TYPES as BALANCER_TYPES
    from lehr.plugins.command.payload import TYPES as COMMAND_TYPES
    from lehr.plugins.database.payload import TYPES as DATABASE_TYPES
    from lehr.plugins.file.payload import TYPES as FILE_TYPES
    from lehr.plugins.process.payload import TYPES as PROCESS_TYPES

    production = (*FILE_TYPES, *PROCESS_TYPES, *COMMAND_TYPES, *BALANCER_TYPES, *DATABASE_TYPES)
    known = Registry((*production, *CHECK_TYPES, *GOVERNANCE_TYPES), ADDONS)
    for entry in _installed("lehr.types"):
        with _blaming(entry):
            for item in entry.load()():
                known.add(item)
    return known


def plugins(deployment: Deployment) -> list[AssetPlugin]:
    """A plugin for every type that has production. Each has threads of its own (invariant I9).

    An installed one that cannot be used is skipped and logged: its assets stall, and delay no others.
    """
    from lehr.base.blocking import Threads
    from lehr.base.clock import SystemClock
    from lehr.plugins.balancer.plugin import BalancerPlugin
    from lehr.plugins.command.plugin import CommandPlugin
    from lehr.plugins.database.plugin import DatabasePlugin
    from lehr.plugins.file.plugin import FilePlugin
    from lehr.plugins.process.plugin import ProcessPlugin

    base, state, clock = deployment.base, deployment.state, SystemClock()
    known: list[AssetPlugin] = [
        FilePlugin(
            base, Threads("file", 8), secrets=secrets(deployment, "file"), protected=protected(deployment)
        ),
        CommandPlugin(
            base,
            state / "commands",
            Threads("command", CommandPlugin.traits.turns),
            clock,
            secrets=secrets(deployment, "command"),
        ),
        DatabasePlugin(
            base,
            Threads("database", DatabasePlugin.threads),
            clock,
            secrets=secrets(deployment, "database"),
        ),
        BalancerPlugin(base, Threads("balancer", BalancerPlugin.traits.turns), clock),
        ProcessPlugin(
            state,
            Threads("process", ProcessPlugin.traits.turns),
            clock,
            base=base,
            secrets=secrets(deployment, "process"),
        ),
    ]
    known.extend(_installed_plugins(deployment, {name for plugin in known for name in plugin.types}))
    return known


def checks() -> list[CheckPlugin]:
    """Every check, in the order in which verdicts are shown.

    Raises:
        StalledError: an installed one cannot be used. Without it, pushes that it would hold back might start.
    """
    from lehr.checks import CHECKS
    from lehr.sdk.check import CheckPlugin

    known = [check() for check in CHECKS]
    for entry in _installed("lehr.checks"):
        with _blaming(entry):
            check: object = entry.load()()
            if not isinstance(check, CheckPlugin):
                raise TypeError(f"it returned a {type(check).__name__}, not a CheckPlugin")
            known.append(check)
    return known


def source(deployment: Deployment) -> CompositeSource:
    """The source of truth, with the sources that its `lehr.yaml` declares.

    Raises:
        StalledError: a file of signing keys cannot be read, or the source does not support signatures.
    """
    import functools

    from lehr.base.blocking import Threads
    from lehr.base.clock import SystemClock
    from lehr.sources import CompositeSource, Means, open_declared

    clock = SystemClock()
    means = Means(
        deployment.state,
        deployment.base,
        clock,
        lambda name: Threads(f"source-{name}", 1),
        functools.partial(_rows, deployment.base),
        functools.partial(_released, deployment.base),
        deployment.lender,
    )
    primary = primary_source(deployment)
    return CompositeSource(primary, lambda name, declared: open_declared(name, declared, means))


def primary_source(deployment: Deployment) -> GitSource | DirectorySource:
    """Only the source of truth, which holds `lehr.yaml`.

    Raises:
        StalledError: as `source`.
    """
    from lehr.base.blocking import Threads
    from lehr.base.clock import SystemClock
    from lehr.sources import SignersFile, open_source

    return open_source(
        deployment.location,
        deployment.state,
        clock=SystemClock(),
        kind=deployment.kind,
        branch=deployment.branch,
        path=deployment.path,
        poll_seconds=deployment.poll,
        blocking=Threads("source", 1),
        signers=None if deployment.signed_by is None else SignersFile(deployment.signed_by),
        remember=True,
        exact=deployment.exact,
    )


def _rows(base: Path, place: SqlPlace) -> Rows:
    from lehr.plugins.database.databases import rows

    return rows(place.sql, place.query, base)


def _released(base: Path, place: PartitionPlace) -> list[Asset]:
    from lehr.control.state_folder import named_state
    from lehr.query.released import released_in, released_in_archive

    if place.archive is not None:
        return released_in_archive(base / Path(place.archive).expanduser(), place)
    assert place.state is not None
    store = open_store(named_state(base / Path(place.state).expanduser()), read_only=True)
    try:
        return released_in(store, place)
    finally:
        store.close()


def require_location(location: str) -> None:
    """Check that a source on this machine exists.

    Raises:
        TransientError: it does not exist.
    """
    from lehr.sources import require_location

    require_location(location)


def interrupt_sources() -> None:
    """Make running fetches fail: this process is ending, and one that hangs would hold it up."""
    from lehr.sources import interrupt

    interrupt()


def past(state: Path, revision: SourceRevision) -> Past | None:
    """What the state folder keeps of a revision that an incarnation was made from; None if nothing.

    Raises:
        StalledError: the kept data is damaged.
    """
    from lehr.sources.past import past_revision

    return past_revision(state, revision)


def secrets(deployment: Deployment, user: str) -> Secrets:
    """Reads the secrets that intent refers to.

    Args:
        user: the reader. Each has threads of its own: a key service that hangs delays no other (invariant
            I9).
    """
    import os

    from lehr.base.blocking import Threads
    from lehr.secrets import SecretReader
    from lehr.sources.kept import content_at, kept_content

    folder = deployment.base / deployment.path

    def ciphertext(path: str, digest: str) -> bytes | None:
        # A plan is made from files that are not published yet.
        return kept_content(deployment.state, digest) or content_at(folder / path, digest)

    threads = Threads(f"{user} secrets", 4)
    return SecretReader(deployment.base, deployment.state, ciphertext, os.environ, threads)


def generation(environment: Mapping[str, str] | None = None, state: Path | None = None) -> Generation:
    """A generation worker that knows the types of `registry`.

    Args:
        environment: variables in which its process differs from all other workers.
        state: folder in which it keeps its results, for its successors; None to keep nothing.
    """
    from lehr.base.blocking import Threads
    from lehr.generate.engine.client import GenerationWorker

    memo = None if state is None else state / MEMO_FILE
    threads = Threads("generate", 1)
    return GenerationWorker("lehr.wiring:registry", threads, memo=memo, environment=environment)


def look_up(base: Path) -> LookUp:
    """Queries databases on a thread of its own: one that hangs delays nothing else (invariant I9).

    Args:
        base: what relative paths are relative to.
    """
    from lehr.base.blocking import Threads
    from lehr.plugins.database.databases import column

    threads = Threads("rules", 1)

    async def ask(rule: DatabaseRule) -> frozenset[str]:
        return await threads.run(column, rule.connection, rule.query, base)

    return ask


def open_store(state: Path, named: str | None = None, *, read_only: bool = False) -> CheckableStore:
    """The store of a state folder: `lehr.store.opening.store_of`."""
    from lehr.store.opening import store_of

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
    from lehr.store.opening import has_store

    return has_store(state / STATE_FILE)


def store_place(state: Path, named: str | None = None) -> str:
    """Where the store of a state folder is, for messages."""
    from lehr.store.opening import place_of

    return place_of(state / STATE_FILE, named)


def parts(deployment: Deployment, store_address: str | None = None) -> Parts:
    """The parts of a control plane. The caller holds the state folder's lock.

    Args:
        store_address: where the store is, if not recorded in the state folder. It may hold a password, so it
            is not part of the deployment, which plugins see.

    Raises:
        TransientError, StalledError: the store cannot be opened.
    """
    from lehr.base.blocking import Threads
    from lehr.base.chance import Chance
    from lehr.base.clock import SystemClock
    from lehr.control.plane import Parts
    from lehr.control.retention import Retention
    from lehr.control.server import Server
    from lehr.store.opening import forget_store

    joins = not has_store(deployment.state)
    return Parts(
        listen=lambda carry_out: Server(deployment.state, carry_out),
        store=open_store(deployment.state, store_address),
        source=source(deployment),
        generation=generation(state=deployment.state),
        clean_generation=generation,
        registry=registry(),
        plugins=plugins(deployment),
        checks=checks(),
        clock=SystemClock(),
        chance=Chance(),
        blocking=Threads("store", 1),
        reading=Threads("reading", 1),
        look_up=look_up(deployment.base),
        claims=claims(deployment, store_address),
        joins=joins,
        retention=Retention(deployment.retain_seconds, deployment.retain)
        if deployment.retain_seconds
        else None,
        forget_store=lambda: forget_store(deployment.state / STATE_FILE) if joins else None,
        tidying=_tidying(deployment.state),
    )


def _tidying(state: Path) -> Tidying:
    import functools

    from lehr.base.blocking import Threads
    from lehr.control.mirror_upkeep import Tidying
    from lehr.sources import forget, pack

    return Tidying(functools.partial(forget, state), functools.partial(pack, state), Threads("tidying", 1))


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
    from lehr.base.blocking import Threads
    from lehr.store.claims import HostClaims

    # Two state folders with one store are one owner.
    store = store_place(deployment.state, store_address)
    return HostClaims(
        register,
        os.path.realpath(store) if store.startswith("/") else store,
        deployment.state,
        deployment.base,
        Threads("claimed paths", 4),
        Threads("claims", 1),
        protected=protected(deployment),
    )


def protected(deployment: Deployment) -> Protected:
    """Folders that no path of intent may lead into; git repositories are detected as well."""
    from lehr.control.state_folder import states
    from lehr.sdk.protected import Protected

    return Protected({deployment.state: "the state folder", states(): "the folder of all states"})


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
    from lehr.store.opening import is_gone, register_of
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


def _installed(group: str) -> list[EntryPoint]:
    """Entry points of other packages under `group`, by name."""
    import importlib.metadata

    return sorted(importlib.metadata.entry_points(group=group), key=lambda item: item.name)


def _installed_plugins(deployment: Deployment, served: set[str]) -> Iterator[AssetPlugin]:
    """Installed plugins that can be used; `served` are the types that have a plugin already."""
    import structlog

    from lehr.base.errors import StalledError
    from lehr.sdk.plugin import AssetPlugin

    for entry in _installed("lehr.plugins"):
        try:
            with _blaming(entry):
                plugin: object = entry.load()(deployment)
                if not isinstance(plugin, AssetPlugin):
                    raise TypeError(f"it returned a {type(plugin).__name__}, not an AssetPlugin")
                for name in served.intersection(plugin.types):
                    raise ValueError(f"another plugin serves type {name} already")
        except StalledError as error:
            structlog.get_logger().error(
                "a plugin is left out: its assets stall, all others go on", error=str(error)
            )
            continue
        served.update(plugin.types)
        yield plugin


@contextlib.contextmanager
def _blaming(entry: EntryPoint) -> Iterator[None]:
    """Name the installed package that caused an error.

    Raises:
        StalledError: it failed.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        from lehr.base.errors import StalledError

        name, version = (entry.dist.name, entry.dist.version) if entry.dist else (entry.module, "")
        raise StalledError(
            f"the installed package {name} {version}".rstrip() + " cannot be used",
            code="WIR101",
            why=f"its {entry.group} entry point {entry.name} ({entry.value}) failed: "
            f"{type(error).__name__}: {error}",
            fix=f"mend or update it, or take it away: pip uninstall {name}",
        ) from error
