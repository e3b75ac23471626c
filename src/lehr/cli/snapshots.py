"""A whole incarnation, of this state or imported."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lehr.base.errors import LehrError
from lehr.cli.stored import open_read_store, open_reading
from lehr.model.asset import Asset
from lehr.model.incarnation import Incarnation
from lehr.sdk.store import Store

IMPORTED = "imported:"
"""Prefix of the names of imported incarnations."""


class Snapshot(NamedTuple):
    """An incarnation, with a function that reads its assets in order of id.

    Attributes:
        name: as written on the command line.
    """

    name: str
    header: Incarnation
    assets: Callable[[], Iterator[Asset]]


@contextlib.contextmanager
def open_snapshot(text: str) -> Iterator[Snapshot]:
    """The incarnation that `text` names: `3`, `hello@3`, `latest`, `previous`, or `imported:hello@3`.

    Raises:
        LehrError: it does not exist, was pruned, or the name is not valid.
    """
    if text.startswith(IMPORTED):
        with open_read_store() as store:
            yield imported(store, text)
        return
    with open_reading() as reading:
        header = reading.incarnation(text)
        yield Snapshot(header.name, header, lambda: reading.intent.assets(reading.partition, header.sequence))


def imported(store: Store, text: str) -> Snapshot:
    """The imported incarnation named `text`.

    Raises:
        LehrError: it does not exist.
    """
    name = text.removeprefix(IMPORTED)
    found = {item.header.name: item.header for item in store.intent.imported()}
    if name not in found:
        names = ", ".join(IMPORTED + known for known in found)
        raise LehrError(
            f"no incarnation {name} was imported",
            code="CLI148",
            why=f"imported incarnations: {names}" if found else "nothing was imported yet",
            fix="import it with `lehr store import FILE`",
        )
    return Snapshot(text, found[name], lambda: store.intent.imported_assets(name))
