"""Target selections of plugins in other processes."""

from __future__ import annotations

from lehr.plugins.remote import messages as m
from lehr.plugins.remote.channel import SELECT
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.wire import error_of

_SECONDS = 10.0


class RemoteSelection:
    """A `SelectionService` that a plugin answers. Its answers are checked where they are used.

    Args:
        name: of the selection, for the plugin and in messages.
    """

    def __init__(self, name: str, connection: Connection) -> None:
        self.name = name
        self._connection = connection

    async def ask(self, question: bytes) -> bytes:
        """The encoded answer. Raises `LehrError` for the plugin's trouble, or if there is no answer."""
        request = m.SelectRequest(selection=self.name, question=question)
        answer = await self._connection.call(SELECT, request, _SECONDS)
        if answer.WhichOneof("result") == "trouble":
            raise error_of(answer.trouble, str)
        return bytes(answer.answer)
