"""The screen of a rollout: its waves as lanes, and what holds each. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lehr.base.moments import span
from lehr.page.answers import attributes

MOST_UNITS = 50
"""Units that a lane lists; of the others it has numbers."""

_HAS = ("released", "pushing", "validating", "good", "bad")
_IS = {"running": "is under way", "paused": "is paused", "holding": "is on hold"}
_WORDS = {True: "good", False: "bad", None: "unknown"}


class LaneView(NamedTuple):
    """A wave.

    Attributes:
        sign: the status whose sign it has; empty for none.
        gate: what it waits for; empty if it is over.
        units: as resources have them, those in trouble first.
        rest: how many further units there are in each state, in words; empty if there are none.
    """

    title: str
    about: str
    state: str
    sign: str
    gate: str
    units: tuple[Any, ...]
    rest: str


class RolloutView(NamedTuple):
    """The screen.

    Attributes:
        measured: unit, metric, value, good values, state and cause, for each metric of each unit.
    """

    headline: str
    state: str
    rollout: Any
    progress: str
    unchanged: str
    lanes: tuple[LaneView, ...]
    measured: tuple[tuple[str, ...], ...]


def rollout_view(answer: Any) -> RolloutView:
    """The screen of an answer of `rollout`, or of one of `rollouts`."""
    found = attributes(answer)
    return RolloutView(
        headline=_headline(found),
        state=found.state,
        rollout=found,
        progress=_progress(found),
        unchanged=f"{_counted(found.unchanged, 'other unit')} without a change",
        lanes=tuple(_lanes(found)),
        measured=tuple(_measured(found)),
    )


def _headline(found: Any) -> str:
    if found.state in _IS:
        wave = f", wave {found.wave} of {found.waves}" if found.wave else ""
        return f"{found.policy} {_IS[found.state]}{wave}"
    if found.state == "blocked":
        units = _counted(len(found.units), "unit")
        return f"{found.policy} cannot begin: the content of {units} is quarantined"
    return f"{found.policy} has nothing under way"


def _progress(found: Any) -> str:
    if not found.target:
        return _counted(found.unchanged + len(found.units), "unit")
    return f"{sum(unit.state in _HAS for unit in found.units):,} of {len(found.units):,} units updated"


def _lanes(found: Any) -> Iterator[LaneView]:
    units = {unit.id: unit for unit in found.units}
    for lane in found.lanes:
        mine = [units.pop(id) for id in lane.units if id in units]
        which = "" if lane.takes == "all units" else f": {lane.takes}"
        soak = f", each good for {span(lane.soak_seconds)}" if lane.soak_seconds else ""
        about = f"{_counted(len(mine), 'unit')}{which}{soak}"
        sign = _SIGNS.get(lane.state, found.state)
        yield _lane(f"Wave {lane.wave}", about, lane.state, sign, lane.gate, mine)
    if units:
        left = list(units.values())
        title = "Other units" if found.lanes else "Units"
        gate = "" if found.lanes else found.waits_for
        yield _lane(title, _counted(len(left), "unit"), "", "", gate, left)


_SIGNS = {"over": "done", "ahead": "waiting"}
"""The signs of waves; the one under way has that of the rollout, which may be on hold."""

_ORDER = ("bad", "gone back", "held", "pushing", "released", "validating", "next", "good", "waiting")


def _lane(title: str, about: str, state: str, sign: str, gate: str, units: Sequence[Any]) -> LaneView:
    ordered = sorted(units, key=lambda unit: _ORDER.index(unit.state) if unit.state in _ORDER else -1)
    rest = Counter(unit.state for unit in ordered[MOST_UNITS:])
    more = ", ".join(f"{count:,} {word}" for word, count in rest.items())
    return LaneView(title, about, state, sign, gate, tuple(ordered[:MOST_UNITS]), more)


def _measured(found: Any) -> Iterator[tuple[str, ...]]:
    for unit in found.units[:MOST_UNITS]:
        for item in unit.metrics:
            yield unit.id, item.name, _value(item.value), item.bounds, _WORDS[item.good], item.why


def _value(value: Any) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else f"{value:.6g}"


def _counted(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
