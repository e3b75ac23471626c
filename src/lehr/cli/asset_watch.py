"""`lehr get assets --watch`: the changes of each incarnation as they are published."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import click
import msgspec

from lehr.base.clock import SystemClock
from lehr.cli.asset_query import AssetQuery
from lehr.cli.named_server import named_server
from lehr.cli.stored import open_reading
from lehr.cli.terminal import printable
from lehr.sdk.watch import Batch, ListAgainError, Watchable

_AGAIN_SECONDS = 1.0


def follow(form: str, asked: AssetQuery) -> None:
    """Write the current rows, then every change, until interrupted."""
    with open_watch(asked) as watch:
        asyncio.run(_follow(form, watch))


@contextlib.contextmanager
def open_watch(asked: AssetQuery) -> Iterator[Watchable]:
    """The query to a server or a state."""
    wanted = asked.wanted()
    url = named_server()
    with open_reading() as reading:
        if url is None:
            from lehr.query.partition_watch import IncarnationFeed, PartitionWatch

            feed = IncarnationFeed(reading.store, reading.partition)
            yield PartitionWatch(reading.store, feed, wanted=wanted.matches)
            return
        from lehr.client.http import HttpWatch

        yield HttpWatch(url, reading.partition, filter=asked.filter or "", selector=asked.selector or "")


async def _follow(form: str, watch: Watchable) -> None:
    from lehr.base.errors import TransientError

    at: int | None = None
    while True:
        try:
            if at is None:
                listing = await watch.list()
                at = listing.sequence
                _show(form, Batch(at, tuple(listing.assets)), whole=True)
            async for batch in watch.watch(at):
                at = batch.sequence
                if batch.changed or batch.gone:
                    _show(form, batch, whole=False)
        except ListAgainError as error:
            click.echo(f"listing again: {error.why}", err=True)
            at = None
        except TransientError as error:
            click.echo(f"retrying: {error}", err=True)
        await SystemClock().sleep(_AGAIN_SECONDS)


def _show(form: str, batch: Batch, *, whole: bool) -> None:
    """In JSON, a line for each incarnation; otherwise a line for each asset."""
    if form == "json":
        changed = [{**asset.document(), "digest": asset.digest} for asset in batch.changed]
        line = {"sequence": batch.sequence, "whole": whole, "changed": changed, "gone": batch.gone}
        print(msgspec.json.encode(line).decode(), flush=True)
        return
    word = "is" if whole else "changed"
    for asset in batch.changed:
        print(f"{batch.sequence}  {word:<7}  {printable(asset.id)}  {printable(asset.type)}", flush=True)
    for id in batch.gone:
        print(f"{batch.sequence}  gone     {printable(id)}", flush=True)
