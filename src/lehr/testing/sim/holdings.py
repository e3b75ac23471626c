"""The holdings of simulated production, their names, and how much of them a look sees."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.model.asset import Asset
from lehr.model.diff import Target
from lehr.model.operation import Outcome
from lehr.testing.sim.plain_values import shortened
from lehr.testing.sim.trace import Trace

_NOBODY = "by-hand"
_SIGHTS = 16


class Sight(msgspec.Struct, frozen=True):
    """Production's content from a moment on, in seconds of the loop."""

    since: float
    value: Any


class Holdings:
    """All values in production, each under a name.

    Attributes:
        values: what there is, by asset id; `put` and `take` change it.
        hidden: seconds after which a change can be seen, by asset id.
        returning: values that return without a push, by asset id, and when, in the event loop's
            seconds.
        naming: True if it makes names of its own: what a push has made is found only by its name, which is
            the asset's handle, or by the push's id.
        names: of all values, by asset id.
        connecting: True if what an asset reads is also its connection to another one's name, an output.
        connections: the names that each value was made with, by asset id and that of the other.
        strangers: how many things exist that Lehr does not manage.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.values: dict[str, Any] = {}
        self.hidden: dict[str, float] = {}
        self.returning: dict[str, Sight] = {}
        self.naming = False
        self.names: dict[str, str] = {}
        self.connecting = False
        self.connections: dict[str, dict[str, str]] = {}
        self.strangers = 0
        self._sights: dict[str, deque[Sight]] = {}

    def put(self, id: str, value: Any, maker: str = _NOBODY) -> None:
        """Make production hold `value`. `maker`: the push that does, if one does."""
        self._remember(id)
        self.values[id] = value
        self.names.setdefault(id, f"{id}#{maker}")

    def take(self, id: str) -> None:
        """Make production hold nothing."""
        self._remember(id)
        self.values.pop(id, None)
        self.names.pop(id, None)
        self.connections.pop(id, None)

    def name_seen(self, target: Target) -> str:
        """The name of what a look for `target` finds; empty if it finds nothing."""
        name = self.names.get(target.id, "")
        found = name == target.handle or name.endswith((f"#{_NOBODY}", f"#{target.lost}"))
        return name if found or not self.naming else ""

    def break_down(self, id: str, seconds: float) -> None:
        """Production crashes, and restarts itself after `seconds`."""
        loop = asyncio.get_running_loop()
        back, name = Sight(loop.time() + seconds, self.values.get(id)), self.names.get(id)
        connections = self.connections.get(id)
        self.take(id)
        self.returning[id] = back

        def come_back() -> None:
            if self.returning.get(id) is back:
                self.put(id, back.value)
                if name is not None:
                    self.names[id] = name
                if connections is not None:
                    self.connections[id] = connections
                self.trace.note("recovery", f"{id} = {shortened(back.value)}, restarted by production")

        loop.call_later(seconds, come_back, context=contextvars.Context())

    def recovery(self, id: str, intended: Any) -> float | None:
        """Seconds until production holds `intended` without a push; None if it needs a push."""
        back = self.returning.get(id)
        if back is None or back.value != intended:
            return None
        return back.since - asyncio.get_running_loop().time()

    def _remember(self, id: str) -> None:
        self.returning.pop(id, None)
        sights = self._sights.setdefault(id, deque(maxlen=_SIGHTS))
        sights.append(Sight(asyncio.get_running_loop().time(), self.values.get(id)))

    def seen(self, id: str) -> Any:
        """The result of a look now: past values, where changes show late."""
        delay = self.hidden.get(id)
        if delay is not None:
            now = asyncio.get_running_loop().time()
            for sight in self._sights.get(id, ()):
                if sight.since + delay > now:
                    return sight.value
        return self.values.get(id)

    def is_connected(self, asset: Asset) -> bool:
        """Whether an asset was made with the names of what it reads, if production connects assets."""
        wanted = {id: self.names.get(id) for id in asset.document()["payload"]["reads"]}
        return not self.connecting or self.connections.get(asset.id, {}) == wanted

    def outputs(self, id: str, observed: Any) -> dict[str, Any]:
        """The outputs of what a look has observed."""
        name = self.names.get(id)
        neighbours = len(self.values) + self.strangers
        return {} if observed is None or name is None else {"name": name, "neighbours": neighbours}

    def named(self, target: Target, outcome: Outcome) -> Outcome:
        """`outcome`, with the name of what is there now."""
        name = self.names.get(target.id)
        if not self.naming or name is None or not isinstance(outcome, Outcome):
            return outcome
        return replace(outcome, handle=name)
