"""The waves of a rollout under way, each with its units and what holds it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

import msgspec

from lehr.base.moments import span
from lehr.rollouts.course import Rollout
from lehr.rollouts.members import Member, units_of
from lehr.rollouts.policy import Policy
from lehr.rollouts.taking_part import taking_part_in
from lehr.rollouts.waves import Wave, assigned, in_order


class LaneState(enum.StrEnum):
    """State of a wave.

    OVER: each of its units is updated, good, and has had its soak. UNDER_WAY: its units are being updated, or
    soak. AHEAD: it waits for the one before.
    """

    OVER = "over"
    UNDER_WAY = "under way"
    AHEAD = "ahead"


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """A wave.

    Attributes:
        wave: its number, from 1.
        takes: which units, in words.
        soak_seconds: exposure that each of its units needs before the next wave.
        units: ids of its units, updated ones first, as far as they are known now.
        gate: what it waits for, in words; empty if it is over.
    """

    wave: int
    takes: str
    soak_seconds: float
    state: LaneState
    units: tuple[str, ...]
    gate: str


def lanes_of(
    policy: Policy, running: Rollout, members: Sequence[Member], now: float, wave: int, waits_for: str
) -> tuple[Lane, ...]:
    """The waves of a rollout; none if a selection of the user's own decides instead.

    Args:
        members: all assets that the policy governs.
        now: wall-clock seconds.
        wave: the number of the one under way; 0 if all are over.
        waits_for: what must happen next in the rollout, in words.

    Raises:
        ValueError: the order of the units cannot be used.
    """
    if policy.payload.selected_by is not None:
        return ()
    return tuple(_lanes(policy, running, members, now, wave, waits_for))


def _lanes(
    policy: Policy, running: Rollout, members: Sequence[Member], now: float, wave: int, waits_for: str
) -> Iterator[Lane]:
    selection = policy.payload.target_selection
    units = list(taking_part_in(running, units_of(members), now).values())
    for item in assigned(selection, in_order(selection, units)):
        state = _state(item.number, wave)
        gates = {LaneState.OVER: "", LaneState.UNDER_WAY: waits_for}
        before = selection.waves[item.number - 2]
        yield Lane(
            wave=item.number,
            takes=str(item.wave),
            soak_seconds=item.wave.soak_seconds,
            state=state,
            units=tuple(unit.id for unit in item.units),
            gate=gates.get(state) or (_ahead(item.number, before) if state is LaneState.AHEAD else ""),
        )


def _state(number: int, wave: int) -> LaneState:
    if wave == 0 or number < wave:
        return LaneState.OVER
    return LaneState.UNDER_WAY if number == wave else LaneState.AHEAD


def _ahead(number: int, before: Wave) -> str:
    soak = f" and has been for {span(before.soak_seconds)}" if before.soak_seconds else ""
    return f"wave {number - 1}, until each of its units is good{soak}"
