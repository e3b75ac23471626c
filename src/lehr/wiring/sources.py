"""The source of truth, and those that it declares."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from lehr.wiring.deployment import Deployment
from lehr.wiring.stores import open_store

if TYPE_CHECKING:
    from lehr.model.asset import Asset
    from lehr.model.declared_sources import PartitionPlace, SqlPlace
    from lehr.model.incarnation import SourceRevision
    from lehr.query.joined import Past
    from lehr.sdk.source import Rows
    from lehr.sources import CompositeSource, DirectorySource, GitSource


def source(deployment: Deployment) -> CompositeSource:
    """The source of truth, with the sources that its `lehr.yaml` declares.

    Raises:
        StalledError: a file of signing keys cannot be read, or the source does not support signatures.
    """
    from lehr.base.blocking import Threads
    from lehr.base.clock import SystemClock
    from lehr.sources import CompositeSource, SourceContext, open_declared

    clock = SystemClock()
    context = SourceContext(
        deployment.state,
        deployment.base,
        clock,
        lambda name: Threads(f"source-{name}", 1),
        functools.partial(_rows, deployment.base),
        functools.partial(_released, deployment.base),
        deployment.lender,
    )
    primary = primary_source(deployment)
    return CompositeSource(primary, lambda name, declared: open_declared(name, declared, context))


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
    """The data that the state folder keeps of a revision from which an incarnation was made, if any.

    Raises:
        StalledError: the kept data is damaged.
    """
    from lehr.sources.past import past_revision

    return past_revision(state, revision)
