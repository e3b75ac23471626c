"""Judges rate limits from outside: no more pushes start within their windows than they allow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from lehr.checks.rate_limit import RateLimit
from lehr.model.asset import Asset
from lehr.model.operation import Operation
from lehr.testing.sim.selectors import selected
from lehr.testing.sim.witnessed_state import WitnessedState


class _Start(msgspec.Struct, frozen=True):
    """A push that a rate limit counts, and the limit as it was then."""

    at: float
    key: tuple[str, ...]
    payload: dict[str, Any]


class RateLimitJudge:
    """All rate limits in force."""

    def __init__(self, broken: Callable[[str, str], None], state: WitnessedState) -> None:
        """`broken` is called with the rule and what breaks it."""
        self._broken = broken
        self._state = state
        self._starts: deque[_Start] = deque(maxlen=256)

    def admitted(self, operation: Operation, asset: Asset) -> None:
        """I3: a push of an asset, which limits may delay, is admitted."""
        for id, payload in self._state.payloads("lehr.RateLimit").items():
            if not selected(payload["select"], asset) or any("/" in term for term in payload["group_by"]):
                continue
            # From the time when the turn began, which may be before one that was admitted already.
            latest = max(operation.started_at, *(item.at for item in self._starts), 0.0)
            # Starts counted for less time, before the limit changed, may be forgotten.
            if self._used(asset, id, payload, latest, payload) >= payload["pushes"]:
                self._broken("I3", f"{operation.asset} is admitted beyond the rate limit {id}")
            self._starts.append(_Start(operation.started_at, _counted_for(asset, id, payload), payload))

    def has_room(self, asset: Asset, id: str, now: float) -> bool:
        """Whether a push of an asset would be within the rate limit `id` now, if that still exists."""
        payload = self._state.payloads("lehr.RateLimit").get(id)
        return payload is None or self._used(asset, id, payload, now) < payload["pushes"]

    def _used(
        self, asset: Asset, id: str, payload: dict[str, Any], now: float, by: dict[str, Any] | None = None
    ) -> int:
        """Starts that count for a limit; `by`: only those that were counted by this very one."""
        since = now - msgspec.convert(payload, RateLimit).window()
        key = _counted_for(asset, id, payload)
        counted = [item for item in self._starts if item.at > since and item.key == key]
        return sum(1 for item in counted if by is None or item.payload == by)


def _counted_for(asset: Asset, limit: str, payload: dict[str, Any]) -> tuple[str, ...]:
    """The rate limit's key for a push of an asset."""
    return limit, *(_group(asset, term) for term in payload["group_by"])


def _group(asset: Asset, term: str) -> str:
    document = asset.document()
    labels = document["addons"].get("lehr.Labels", {}).get("labels", {})
    return str(labels.get(term.removeprefix("label:"), "") if term.startswith("label:") else document[term])
