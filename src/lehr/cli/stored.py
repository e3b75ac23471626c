"""Location of the state, the options that name it, and access to it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from lehr import wiring
from lehr.base.errors import LehrError
from lehr.cli.complete import complete_incarnation, complete_partition
from lehr.cli.named_server import named_server, server_option, server_token
from lehr.cli.output import output_option
from lehr.cli.pager import no_pager_option
from lehr.control.state_folder import (
    UNUSED,
    default_state,
    named_state,
    require_not_moved,
    require_own,
    states,
)

if TYPE_CHECKING:
    from lehr.http.remote import RemoteStore
    from lehr.query.partition_view import Reading
    from lehr.sdk.store import CheckableStore, Store

STATE_VARIABLE = "LEHR_STATE"
STORE_VARIABLE = "LEHR_STORE"

_STORE, _STATE, _PARTITION, _EVERYTHING = "lehr.store", "lehr.state", "lehr.partition", "lehr.everything"
"""In the context of a command: what the options name that all commands have which read a state."""

Function = TypeVar("Function", bound=Callable[..., Any])


def _kept(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """A callback that keeps the value of an option in the context."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        ctx.meta[key] = value or None

    return keep


_store_option = click.option(
    "--store",
    metavar="URL",
    envvar=STORE_VARIABLE,
    help=f"Store, if not a file: postgresql://... Defaults to {STORE_VARIABLE}, then to the state folder's.",
    expose_value=False,
    callback=_kept(_STORE),
    is_eager=True,
)


def state_option(function: Function) -> Function:
    """Adds `--state` and `--store` to a command that reads a state."""
    option = click.option(
        "--state",
        type=click.Path(path_type=Path),
        envvar=STATE_VARIABLE,
        expose_value=False,
        callback=_kept(_STATE),
        help=f"State folder. Defaults to {STATE_VARIABLE}, then to that of the workspace here or above.",
    )
    return option(_store_option(function))


def own_state_option(
    what: str = "State folder.", of: str = "the workspace"
) -> Callable[[Function], Function]:
    """Adds only `--state`, for a command that names its workspace otherwise."""
    return click.option(
        "--state",
        type=click.Path(path_type=Path, file_okay=False),
        envvar=STATE_VARIABLE,
        help=f"{what} Defaults to {STATE_VARIABLE}, then to that of {of}.",
    )


def workspace_state_option(function: Function) -> Function:
    """Adds `--state` and `--store` to a command that reads a workspace and its state."""
    return own_state_option(of="DIR")(_store_option(function))


partition_option = click.option(
    "--partition",
    help="Partition, if the state has several.",
    metavar="NAME",
    expose_value=False,
    callback=_kept(_PARTITION),
    shell_complete=complete_partition,
)


def incarnation_option(help: str, default: str | None = None) -> Callable[[Function], Function]:
    """Adds `--incarnation`; `help` explains its purpose, and the forms that its value may have."""
    return click.option(
        "--incarnation",
        metavar="INCARNATION",
        default=default,
        show_default=default is not None,
        help=help,
        shell_complete=complete_incarnation,
    )


def reading_options(*formats: str) -> Callable[[Function], Function]:
    """The options of a command that shows a part of one state: the formats of its output, and the state."""
    return lambda function: no_pager_option(
        output_option(*formats)(server_option(state_option(partition_option(function))))
    )


def list_options(limit: int | None) -> Callable[[Function], Function]:
    """The options of all lists; `limit` bounds the output unless `--all` is given."""

    def decorate(function: Function) -> Function:
        function = no_pager_option(partition_option(server_option(state_option(output_option()(function)))))
        function = click.option(
            "--all",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_kept(_EVERYTHING),
            help="Show everything, without a limit.",
        )(function)
        return click.option(
            "--limit",
            type=click.IntRange(min=1),
            default=limit,
            show_default=limit is not None,
            callback=lambda ctx, _option, most: sys.maxsize if ctx.meta[_EVERYTHING] else most,
            help="Show at most this many.",
        )(function)

    return decorate


def named_store() -> str | None:
    """The store named by the command or the environment. It may contain a password: never print it."""
    return cast("str | None", _named(_STORE))


def named_partition() -> str | None:
    """The partition that the command names."""
    return cast("str | None", _named(_PARTITION))


def _named(key: str) -> Any:
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(key)


def has_store(state: Path) -> bool:
    """Whether a state folder has a store, or the command names one."""
    return named_store() is not None or wiring.has_store(state)


def found_state(named: Path | None = None) -> Path | None:
    """The state folder: `named`, or the one that the command names, or that of the current directory or one
    above; None if there is none.

    Where the command names a store or a server, no folder is needed: this machine may be another
    one.
    """
    named = named or _named(_STATE)
    if named is not None:
        return _own(named_state(named))
    here = Path.cwd()
    for folder in (here, *here.parents):
        if wiring.has_store(state := default_state(folder)):
            return _own(state)
    return _own(default_state(here)) if named_store() or named_server() else None


def workspace_state(directory: Path, named: Path | None) -> Path:
    """The state folder that is named, or that of the workspace in `directory`. It may not exist.

    Raises:
        LehrError: other users can access it.
    """
    return _own(default_state(directory) if named is None else named_state(named))


def _own(state: Path) -> Path:
    context = click.get_current_context(silent=True)
    completing = context is not None and context.resilient_parsing
    for repaired in require_own(state, repair=not completing):
        click.echo(f"note: {repaired}", err=True)
    return state.absolute()


def state_folder(named: Path | None = None) -> Path:
    """As `found_state`.

    Raises:
        LehrError: there is none, or other users can access it.
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
        "no state found for this folder or its parents",
        code="CLI158",
        why=f"`lehr run` creates it below {states()}{ignored}",
        fix="change to a workspace, start `lehr run` there, or name a state folder with --state",
    )


def open_store(state: Path, *, read_only: bool = True) -> contextlib.closing[CheckableStore]:
    """The store of `state`, or the one named by the command; by default for reading.

    Raises:
        StalledError, TransientError: it does not exist, or cannot be read.
    """
    return contextlib.closing(wiring.open_store(state, named_store(), read_only=read_only))


def open_read_store(state: Path | None = None) -> contextlib.AbstractContextManager[Store]:
    """The source for a command that only reads: a server, or the store of a state.

    Raises:
        LehrError: there is none.
    """
    url = named_server()
    if url is None:
        return open_store(state_folder(state))
    from lehr.http.remote import RemoteStore

    return contextlib.closing(RemoteStore(url, server_token(url)))


@contextlib.contextmanager
def open_reading(state: Path | None = None) -> Iterator[Reading]:
    """One partition of the state, for reading at this moment.

    Raises:
        LehrError: there is no state, or no such partition.
    """
    from lehr.base.clock import SystemClock
    from lehr.query.partition_view import Reading, choose_partition

    with open_read_store(state) as store:
        chosen = choose_partition(store.intent.partitions(), named_partition())
        yield Reading(store, chosen, SystemClock().now(), wiring.inert_in(store, chosen))


def remote_store(reading: Reading) -> RemoteStore | None:
    """The server, for queries that it answers as a whole; None for a local state."""
    if named_server() is None:
        return None
    from lehr.http.remote import RemoteStore

    assert isinstance(reading.store, RemoteStore)
    return reading.store


def running(state: Path) -> bool:
    """Whether a `lehr run` is active on `state`, or next to the server that the command names."""
    url = named_server()
    if url is not None:
        from lehr.http.connection import Server

        with contextlib.closing(Server(url, server_token(url))) as server:
            return server.run_state().active
    from lehr.control.socket import SOCKET, connected

    try:
        connected(state / SOCKET, 1.0).close()
    except OSError:
        return False
    return True


def running_report(state: Path) -> dict[str, Any] | None:
    """The status report of the `lehr run` of `state`; None if none answers, or it is on another machine."""
    if named_server() is not None:
        return None
    from lehr.control.messages import Report
    from lehr.control.socket import send

    try:
        answer = send(state, Report(), timeout=5.0)
    except LehrError:
        return None
    return answer.content if answer.ok else None
