"""Custom controllers: one function, run over the intent of one partition, local or remote.

In: an async function (`lehr.client.Reconciler`), and where to read intent. Out: the function is called for
every asset when it changes, again after a failure, and whenever it asks to be. `lehr controller` does
this from a command line, `lehr.testing.controllers` in virtual time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from lehr import wiring
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.client import Reconciler, controller_of
from lehr.control.http_servers import token_for
from lehr.control.state_folder import named_state, require_own
from lehr.model.asset import Partition
from lehr.query.partition_view import choose_partition
from lehr.query.partition_watch import IncarnationFeed, PartitionWatch
from lehr.sdk.watch import Watchable

_SERVERS = ("http://", "https://")


async def run(reconciler: Reconciler, watch: Watchable, *, workers: int = 4) -> None:
    """Call `reconciler` for every asset of `watch`, for `workers` assets at a time, until cancelled.

    Raises:
        LehrError: it cannot be watched until it is fixed.
    """
    try:
        await controller_of(reconciler, watch, SystemClock(), Chance(), workers=workers).run()
    except* LehrError as group:
        raise _first(group) from None


@contextlib.contextmanager
def open_watch(
    place: str | Path,
    partition: str | None = None,
    *,
    types: Sequence[str] = (),
    store: str | None = None,
) -> Iterator[Watchable]:
    """The intent of a partition, for listing and watching.

    Args:
        place: the workspace or state folder of a `lehr run`, or the URL of a `lehr serve`.
        partition: optional if there is only one. One that does not exist yet may be watched by name.
        types: of the assets to watch; empty for all.
        store: URL of the store, if it is not in the state folder.

    Raises:
        LehrError: there is no state or server, or the partition is ambiguous.
    """
    if str(place).startswith(_SERVERS):
        from lehr.client.http import HttpWatch  # noqa: PLC0415 - only one of the two is needed
        from lehr.http.remote import RemoteStore  # noqa: PLC0415

        token = partial(token_for, str(place))
        if partition is None:
            with contextlib.closing(RemoteStore(str(place), token)) as remote:
                partition = choose_partition(remote.intent.partitions(), None)
        yield HttpWatch(str(place), Partition(partition), types=tuple(types), token=token)
        return
    state = named_state(Path(place))
    require_own(state)
    with contextlib.closing(wiring.open_store(state, store, read_only=True)) as opened:
        if partition is None:
            partition = choose_partition(opened.intent.partitions(), None)
        feed = IncarnationFeed(opened, Partition(partition))
        yield PartitionWatch(opened, feed, types=types or None)


def _first(group: BaseExceptionGroup[LehrError]) -> LehrError:
    """The first error in nested exception groups."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
