"""Cursors of lists: opaque text that names the place where a list continues."""

from __future__ import annotations

import base64
import binascii

import msgspec

from lehr.base.errors import LehrError
from lehr.model.asset import Partition


class _Place(msgspec.Struct, frozen=True, array_like=True):
    list: str
    partition: Partition
    place: tuple[int, str]


def list_cursor(list: str, partition: Partition, number: int, text: str = "") -> str:
    """The cursor of a list after an item that `number` and `text` name."""
    encoded = msgspec.json.encode(_Place(list, partition, (number, text)))
    return base64.urlsafe_b64encode(encoded).decode().rstrip("=")


def parse_list_cursor(cursor: str, list: str, partition: Partition) -> tuple[int, str]:
    """The number and the text that `list_cursor` was given.

    Raises:
        LehrError: it is not a cursor of this list.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=_Place)
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise LehrError(
            f"{cursor[:80]!r} is not a valid cursor",
            code="QRY125",
            why="cursors are opaque; use one returned by a previous page",
            fix="omit it to list from the beginning",
        ) from error
    if (found.list, found.partition) != (list, partition):
        raise LehrError(
            "the cursor belongs to another list",
            code="QRY126",
            why=f"it continues {found.list} of {found.partition}, and this is {list} of {partition}",
            fix="use one returned by a previous page of this list, or omit it",
        )
    return found.place
