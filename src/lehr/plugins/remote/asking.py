"""Asks a plugin for diffs, one at a time or many in one call, until it needs nothing more."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.diff import Diff, Target
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.channel import DIFF, DIFF_MANY, MOST_BYTES
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.intent import CarriedIntent
from lehr.plugins.remote.wire import GarbageError, diff_of, error_of, target_message
from lehr.sdk.plugin import IndexedDiff

_FRAME_BYTES = 64
_MOST_IN_CALL = MOST_BYTES // 2  # answers may be larger than requests


_marks = itertools.count()
"""Numbers requests, so that an answer to another one is noticed."""


@contextlib.contextmanager
def blaming(plugin: str) -> Iterator[None]:
    """Name the plugin that has answered nonsense."""
    try:
        yield
    except GarbageError as error:
        # Not stalled: a plugin that was replaced answers better, and to look again does no harm.
        raise TransientError(
            f"the plugin {plugin} has answered nonsense",
            code="PLG132",
            why=str(error),
            fix="update the plugin, or report this to its author",
        ) from None


class AskedDiff:
    """One diff that a plugin is asked for.

    Attributes:
        request: to be sent next.
        carried: the intent in it.
    """

    def __init__(self, target: Target, carried: CarriedIntent) -> None:
        self.carried = carried
        self._target = target_message(target)
        self.request = self._sealed()

    def answered(self, answer: m.DiffResponse) -> Diff | None:
        """The diff in an answer; None if the plugin needs more.

        Raises:
            LehrError: the plugin's trouble.
            GarbageError: the answer belongs to another request, or makes no sense.
        """
        if answer.mark != self.request.mark:
            raise GarbageError("an answer to another request")
        shown = self.carried.hidden.shown
        match answer.WhichOneof("answer"):
            case "difference":
                return diff_of(answer.difference, shown)
            case "need":
                return None
            case "trouble":
                raise error_of(answer.trouble, shown)
        raise GarbageError("an answer without a result")

    async def supply(self, need: m.Need) -> None:
        """Carry what the plugin needs. Raises as `CarriedIntent.add`."""
        await self.carried.add(need)
        self.request = self._sealed()

    def _sealed(self) -> m.DiffRequest:
        mark = next(_marks).to_bytes(8, "big")
        return m.DiffRequest(target=self._target, intent=self.carried.message, mark=mark)


async def asked(connection: Connection, diff: AskedDiff, seconds: float) -> Diff:
    """The diff, from as many calls as it takes.

    Raises:
        LehrError: the plugin's trouble, or there is no answer.
    """
    with blaming(connection.name):
        while True:
            answer = await connection.call(DIFF, diff.request, seconds)
            found = diff.answered(answer)
            if found is not None:
                return found
            await diff.supply(answer.need)
            connection.hide(diff.carried.secrets)


async def asked_together(
    connection: Connection, diffs: Mapping[int, AskedDiff]
) -> AsyncGenerator[IndexedDiff, None]:
    """The diffs by their indexes, from as few calls as possible; those without an answer are left out.

    Raises:
        LehrError: there are no more answers.
    """
    waiting = dict(diffs)
    while waiting:
        needing: dict[int, AskedDiff] = {}
        for indexes in _parts(waiting):
            request = m.DiffManyRequest(requests=[waiting[index].request for index in indexes])
            async with contextlib.aclosing(connection.stream(DIFF_MANY, request)) as answers:
                async for answer in answers:
                    index = _index(indexes, answer.index)
                    diff = waiting[index]
                    try:
                        found = await _advanced(connection, diff, answer.response)
                    except LehrError as error:
                        yield index, error
                        continue
                    if found is not None:
                        yield index, found
                    else:
                        needing[index] = diff
        waiting = needing


async def _advanced(connection: Connection, diff: AskedDiff, answer: m.DiffResponse) -> Diff | None:
    """The diff; None if it has been supplied with what the plugin needs."""
    with blaming(connection.name):
        found = diff.answered(answer)
        if found is None:
            await diff.supply(answer.need)
            connection.hide(diff.carried.secrets)
        return found


def _index(indexes: Sequence[int], number: int) -> int:
    if number >= len(indexes):
        raise StalledError(f"the plugin has answered request {number} of {len(indexes)}", code="PLG133")
    return indexes[number]


def _parts(diffs: Mapping[int, AskedDiff]) -> Iterator[list[int]]:
    """Their indexes, in parts whose requests fit into one call."""
    part: list[int] = []
    size = 0
    for index, diff in diffs.items():
        bytes_of = diff.request.ByteSize() + _FRAME_BYTES
        if part and size + bytes_of > _MOST_IN_CALL:
            yield part
            part, size = [], 0
        part.append(index)
        size += bytes_of
    if part:
        yield part
