"""A control plane in this process, and its answers over HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.control.health import Health
from lehr.control.heartbeat import beating
from lehr.control.http_servers import make_token, recorded
from lehr.control.lock import exclusive
from lehr.control.metrics import MEDIA_TYPE
from lehr.control.named_partition import partition_of
from lehr.control.parts import Parts
from lehr.control.plane import ControlPlane
from lehr.control.probes import Probes
from lehr.control.state_folder import write_record
from lehr.sdk.generation import Generation
from lehr.wiring.deployment import Deployment
from lehr.wiring.dry_runs import DryRunsHere
from lehr.wiring.generating import end
from lehr.wiring.new_state import prepare
from lehr.wiring.plane import parts
from lehr.wiring.remote_plugins import described
from lehr.wiring.sources import interrupt_sources
from lehr.wiring.stores import installation, open_store

if TYPE_CHECKING:
    from lehr.http.probes import Probe
    from lehr.http.questions import RunStates
    from lehr.http.server import Address, Running

T = TypeVar("T")


class Answering(NamedTuple):
    """Where and to whom reads are answered over HTTP.

    Attributes:
        names: as in `lehr.http.server.serving`.
        public_read: whether to answer without the token of the state, except dry runs.
        secret: reads that of hooks; None to accept none.
        metrics: configures sources of metrics, for dry runs; None for none.
        deployment: that of the `lehr run` in this process, if any.
    """

    address: Address
    names: tuple[str, ...] = ()
    public_read: bool = False
    secret: Callable[[], str] | None = None
    metrics: Path | None = None
    deployment: Deployment | None = None


class Unless(Protocol):
    """Waits for work, and cancels it and raises if the end of the program is requested first."""

    async def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`."""
        ...


@contextlib.asynccontextmanager
async def control_plane(
    deployment: Deployment, store_address: str | None, generating: Generation, unless: Unless
) -> AsyncIterator[tuple[ControlPlane, Parts]]:
    """A control plane, ready to start; locks the state folder, which is created if it is missing.

    Args:
        store_address, generating: as for `parts`.

    Raises:
        LehrError: the state folder, the source or the store cannot be used.
    """
    await _prepared(deployment, store_address, unless)
    async with contextlib.AsyncExitStack() as held:
        held.enter_context(exclusive(deployment.state))
        await held.enter_async_context(beating(deployment.state, SystemClock()))
        made_of = parts(deployment, store_address, generating)
        try:
            partition = await unless(partition_of(made_of))
            await unless(described(made_of.plugins))
            write_record(deployment.state, deployment.base, str(partition))
            yield ControlPlane(made_of, partition), made_of
        finally:
            interrupt_sources()
            await end(generating)  # before the state folder is unlocked
            made_of.store.close()


async def _prepared(deployment: Deployment, store_address: str | None, unless: Unless) -> None:
    threads = Threads("state", 1)
    try:
        await unless(threads.run(prepare, deployment, store_address))
    except BaseException:
        interrupt_sources()
        raise
    finally:
        threads.close()


@contextlib.asynccontextmanager
async def answering(
    how: Answering,
    state: Path,
    store_address: str | None,
    run_state: RunStates,
    plane: ControlPlane | None = None,
) -> AsyncIterator[Running]:
    """Answers reads of a state over HTTP while in this context.

    Args:
        plane: the control plane in this process, if any: watchers are notified of what it publishes, and
            hooks have it check the source.

    Raises:
        LehrError: the address is not available, or the store cannot be opened.
    """
    from lehr.http.access import Access
    from lehr.http.hooks import Hook
    from lehr.http.server import serving
    from lehr.page.routes import pages

    clock = SystemClock()
    hook = None if plane is None or how.secret is None else Hook(how.secret, plane.refresh, clock)
    async with contextlib.AsyncExitStack() as entered:
        probes = None
        if plane is not None:
            watched = Probes(plane)
            await entered.enter_async_context(watched.counting())
            probes = _probes_of(watched)
        server = await entered.enter_async_context(
            serving(
                how.address,
                lambda: open_store(state, store_address, read_only=True),
                installation(state, DryRunsHere(state, how.metrics, how.deployment)),
                clock,
                run_state=run_state,
                hook=hook,
                names=how.names,
                probes=probes,
                pages=pages,
                access=Access(make_token(state), public_read=how.public_read),
                recorded=lambda url: recorded(url, state),
            )
        )
        if plane is not None:
            plane.listeners.append(lambda attempt: server.notify_published())
        yield server


def _probes_of(watched: Probes) -> dict[str, Probe]:
    from lehr.http.probes import ProbeAnswer

    def health(found: Health) -> ProbeAnswer:
        return ProbeAnswer(found.ok, "application/json", msgspec.json.encode(found))

    return {
        "/healthz": lambda: health(watched.alive()),
        "/readyz": lambda: health(watched.ready()),
        "/metrics": lambda: ProbeAnswer(True, MEDIA_TYPE, watched.metrics().encode()),
    }
