"""Where the state is, and reading it."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lehr import wiring
from lehr.base.errors import LehrError
from lehr.cli.named_server import SERVER_VARIABLE, keep_server, named_server
from lehr.control.state_folder import (
    UNUSED,
    default_state,
    named_state,
    require_not_moved,
    require_own,
    states,
)

if TYPE_CHECKING:
    from lehr.http.questions import Installation
    from lehr.http.remote import RemoteStore
    from lehr.model.asset import Partition
    from lehr.model.types import Registry
    from lehr.query.partition_view import Reading
    from lehr.sdk.store import CheckableStore, Store

STATE_VARIABLE = "LEHR_STATE"
STORE_VARIABLE = "LEHR_STORE"

_STORE = "lehr.store"
"""In the context of a command."""

Function = TypeVar("Function", bound=Callable[..., Any])


def _keep_store(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    ctx.meta[_STORE] = value or None


_store_option = click.option(
    "--store",
    metavar="URL",
    envvar=STORE_VARIABLE,
    help=f"Store, if not a file: postgresql://... Else {STORE_VARIABLE}, else what the state folder says.",
    expose_value=False,
    callback=_keep_store,
    is_eager=True,
)


def state_option(function: Function) -> Function:
    """Adds `--state` and `--store` to a command that looks at a state."""
    option = click.option(
        "--state",
        type=click.Path(path_type=Path),
        envvar=STATE_VARIABLE,
        help=f"State folder; else {STATE_VARIABLE}, else that of the workspace here or in a folder above.",
    )
    return option(_store_option(function))


def workspace_state_option(function: Function) -> Function:
    """The same for one that looks at a workspace, and at its state."""
    option = click.option(
        "--state",
        type=click.Path(path_type=Path, file_okay=False),
        envvar=STATE_VARIABLE,
        help=f"State folder; else {STATE_VARIABLE}, else that of DIR.",
    )
    return option(_store_option(function))


partition_option = click.option("--partition", help="Partition, where the state has several.", metavar="NAME")


def named_store() -> str | None:
    """The store that the command names, or the environment. It may hold a password: never to be shown."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_STORE)


def has_store(state: Path) -> bool:
    """Whether a state folder has a store, or the command names one."""
    return named_store() is not None or wiring.has_store(state)


def found_state(named: Path | None) -> Path | None:
    """The state folder: `named`, or that of the current directory or one above; None if there is none.

    Where the command names a store or a server, no folder is needed: this machine may be another
    one.
    """
    if named is not None:
        return _own(named_state(named))
    here = Path.cwd()
    for folder in (here, *here.parents):
        if wiring.has_store(state := default_state(folder)):
            return _own(state)
    return _own(default_state(here)) if named_store() or named_server() else None


def workspace_state(directory: Path, named: Path | None) -> Path:
    """The state folder of the workspace in `directory`, or the one that is named. It need not exist.

    Raises:
        LehrError: it is not this user's alone.
    """
    return _own(default_state(directory) if named is None else named_state(named))


def _own(state: Path) -> Path:
    for repaired in require_own(state):
        click.echo(f"note: {repaired}", err=True)
    return state.absolute()


def state_folder(named: Path | None) -> Path:
    """As `found_state`.

    Raises:
        LehrError: there is none, or it is not this user's alone.
    """
    state = found_state(named)
    if state is None:
        raise _no_state(Path.cwd())
    return state


def _no_state(here: Path) -> LehrError:
    require_not_moved(here)
    unused = next((up / UNUSED for up in (here, *here.parents) if (up / UNUSED).exists()), None)
    ignored = f"; {unused} is not used, since git writes there" if unused else ""
    return LehrError(
        "neither this folder nor one above it has state",
        code="CLI158",
        why=f"`lehr run` makes it, below {states()}{ignored}",
        fix="go to the workspace, start `lehr run` there, or name a state folder with --state",
    )


@contextlib.contextmanager
def open_store(state: Path) -> Iterator[CheckableStore]:
    """The store of `state`, or the one that the command names, for reading.

    Raises:
        StalledError, TransientError: it is not there, or cannot be read.
    """
    store = wiring.open_store(state, named_store(), read_only=True)
    try:
        yield store
    finally:
        store.close()


def open_store_of(state: Path) -> Callable[[], CheckableStore]:
    """Opens the store as `open_store` does, repeatedly, from any thread. The caller closes it."""
    named = named_store()
    return lambda: wiring.open_store(state, named, read_only=True)


@contextlib.contextmanager
def open_read_store(state: Path | None) -> Iterator[Store]:
    """The source for a command that only reads: a server, or the store of a state.

    Raises:
        LehrError: there is none.
    """
    url = named_server()
    if url is None:
        with open_store(state_folder(state)) as store:
            yield store
        return
    from lehr.http.remote import RemoteStore

    remote = RemoteStore(url)
    try:
        yield remote
    finally:
        remote.close()


@contextlib.contextmanager
def open_reading(state: Path | None, partition: str | None) -> Iterator[Reading]:
    """One partition of the state, to be read as it is now.

    Raises:
        LehrError: there is no state, or no such partition.
    """
    from lehr.base.clock import SystemClock
    from lehr.query.partition_view import Reading, choose_partition

    with open_read_store(state) as store:
        chosen = choose_partition(store.intent.partitions(), partition)
        yield Reading(store, chosen, SystemClock().now(), inert_in(store, chosen))


def remote_store(reading: Reading) -> RemoteStore | None:
    """The server for questions that it answers as a whole; None for a state here."""
    if named_server() is None:
        return None
    from lehr.http.remote import RemoteStore

    assert isinstance(reading.store, RemoteStore)
    return reading.store


def inert_in(store: Store, partition: Partition) -> Callable[[str], bool]:
    """Whether assets of a type have no production. Imports all types at the first call."""
    known: list[Registry] = []

    def inert(type: str) -> bool:
        if not known:
            known.append(registry_of(store, partition))
        return known[0].inert(type)

    return inert


def installation(state: Path) -> Installation:
    """Facts that a server asked over HTTP knows besides the store of `state`."""
    from lehr.http.questions import Installation

    return Installation(inert_in, registry_of, lambda revision: wiring.past(state, revision))


def registry_of(store: Store, partition: Partition, sequence: int | None = None) -> Registry:
    """All types of this installation, and those that an incarnation declares. Slow at first.

    Args:
        sequence: of the incarnation; None for the newest.
    """
    from lehr.model.declared import TYPE, declared_type

    known, newest = registry().copy(), store.intent.newest(partition)
    if newest is not None:
        at = newest.sequence if sequence is None else sequence
        known.declare(map(declared_type, store.intent.assets(partition, at, (TYPE,))))
    return known


@functools.cache
def registry() -> Registry:
    """All types that this installation knows. Slow at the first call."""
    return wiring.registry()


def running(state: Path) -> bool:
    """Whether a `lehr run` answers at `state`, or next to the server that the command names."""
    url = named_server()
    if url is not None:
        from lehr.http.connection import Server

        with contextlib.closing(Server(url)) as server:
            return server.run_state().active
    from lehr.control.client import SOCKET
    from lehr.control.socket import connected

    try:
        connected(state / SOCKET, 1.0).close()
    except OSError:
        return False
    return True


def running_report(state: Path) -> dict[str, Any] | None:
    """Report of the `lehr run` of `state` about itself; None when none answers, or not to this machine."""
    if named_server() is not None:
        return None
    from lehr.control.client import send
    from lehr.control.messages import Report

    try:
        answer = send(state, Report(), timeout=5.0)
    except LehrError:
        return None
    return answer.content if answer.ok else None


def complete_asset(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Asset ids that start with the typed text; none when the state cannot be read."""
    named = ctx.params.get("state") or os.environ.get(STATE_VARIABLE)
    ctx.meta[_STORE] = ctx.meta.get(_STORE) or os.environ.get(STORE_VARIABLE)
    keep_server(ctx, ctx.find_root().params.get("server") or os.environ.get(SERVER_VARIABLE))
    try:
        with (
            ctx.scope(cleanup=False),
            open_reading(Path(named) if named else None, ctx.params.get("partition")) as reading,
        ):
            ids = (head.id for head in reading.intent.heads(reading.partition))
            return [id for id in sorted(ids) if id.startswith(incomplete)]
    except (LehrError, OSError):
        return []
