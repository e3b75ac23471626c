"""The parts of a control plane."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lehr.wiring.deployment import STATE_FILE, Deployment
from lehr.wiring.generating import generation
from lehr.wiring.installed import calendars, checks, plugins, registry
from lehr.wiring.metrics import looks
from lehr.wiring.remote_plugins import provider_validators, remote_selections, remote_validators
from lehr.wiring.sources import source
from lehr.wiring.stores import claims, has_store, open_store
from lehr.wiring.terraform import validators

if TYPE_CHECKING:
    from lehr.control.mirror_upkeep import Tidying
    from lehr.control.parts import Parts
    from lehr.sdk.generation import Generation
    from lehr.sdk.validator import DatabaseRule, LookUp


def parts(deployment: Deployment, store_address: str | None, generating: Generation) -> Parts:
    """The parts of a control plane. The caller holds the state folder's lock.

    Args:
        store_address: where the store is, if not recorded in the state folder. It may hold a password, so it
            is not part of the deployment, which plugins see.
        generating: generates the assets of the workspace.

    Raises:
        TransientError, StalledError: the store cannot be opened.
    """
    import socket

    from lehr.base.blocking import Threads
    from lehr.base.chance import Chance
    from lehr.base.clock import SystemClock
    from lehr.control.parts import Parts
    from lehr.control.retention import Retention
    from lehr.control.server import Server
    from lehr.store.locations import forget_store
    from lehr.wiring.selection_services import selections

    joins = not has_store(deployment.state)
    production = plugins(deployment)
    metrics = looks(deployment)
    return Parts(
        listen=lambda carry_out: Server(deployment.state, carry_out),
        store=open_store(deployment.state, store_address),
        source=source(deployment),
        generation=generating,
        clean_generation=generation,
        registry=registry(),
        plugins=production,
        checks=checks(production),
        clock=SystemClock(),
        chance=Chance(),
        blocking=Threads("store", 1),
        reading=Threads("reading", 1),
        store_reading=Threads("lookups", 2),
        owner=f"{socket.gethostname()}:{deployment.state.resolve()}",
        look_up=look_up(deployment.base),
        validators=(*validators(deployment.state), *provider_validators(deployment.plugins)),
        asked_validators=remote_validators(production),
        claims=claims(deployment, store_address),
        joins=joins,
        retention=Retention(deployment.retain_seconds, deployment.retain)
        if deployment.retain_seconds
        else None,
        forget_store=lambda: forget_store(deployment.state / STATE_FILE) if joins else None,
        tidying=_tidying(deployment.state),
        only=deployment.only,
        metrics=metrics,
        close_metrics=metrics.close,
        selections=selections(
            deployment.selections, deployment.selection_tokens, remote_selections(production)
        ),
        calendars=calendars,
    )


def _tidying(state: Path) -> Tidying:
    import functools

    from lehr.base.blocking import Threads
    from lehr.control.mirror_upkeep import Tidying
    from lehr.sources import forget, pack

    return Tidying(functools.partial(forget, state), functools.partial(pack, state), Threads("tidying", 1))


def look_up(base: Path) -> LookUp:
    """Queries databases on a thread of its own: one that hangs delays nothing else (invariant I9).

    Args:
        base: the directory that relative paths start from.
    """
    from lehr.base.blocking import Threads
    from lehr.plugins.database.databases import column

    threads = Threads("rules", 1)

    async def ask(rule: DatabaseRule) -> frozenset[str]:
        return await threads.run(column, rule.connection, rule.query, base)

    return ask
