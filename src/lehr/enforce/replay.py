"""Decides a recorded decision again, from what was recorded with it, and compares. Reads the store only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from lehr.base.errors import LehrError
from lehr.base.moments import Moment, plain
from lehr.enforce.turn_inputs import decide_again
from lehr.model.asset import AssetId, Partition
from lehr.model.decision import Condition, Decision
from lehr.query.partition_view import Reading


class Difference(msgspec.Struct, frozen=True):
    """A field of a decision that is different when it is decided again. Both values are plain data."""

    field: str
    recorded: Any
    again: Any


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, decided again.

    Attributes:
        number: of the decision.
        at: when it was made.
        same: whether the decision is the same in every field.
        recorded: the condition that was recorded.
        again: the condition now; null if the turn ends without a decision.
        differences: the fields that are not the same, in the order of the record.
    """

    number: int
    partition: Partition
    asset: AssetId
    at: Moment
    same: bool
    recorded: Condition
    again: Condition | None
    differences: tuple[Difference, ...] = ()


def replay(reading: Reading, number: int) -> Replay:
    """Decide again what decision `number` of the partition recorded.

    Raises:
        LehrError: there is no such decision, or it was pruned; it was recorded without its inputs, or this
            version cannot read them; its record is damaged.
    """
    found = reading.records.decision(reading.partition, number)
    if found is None:
        raise _not_there(reading, number)
    decision, inputs = found
    if not inputs:
        raise LehrError(
            f"decision {number} on {decision.asset} cannot be replayed",
            code="ENF112",
            why="it was recorded without its inputs",
            fix=f"replay a newer one: `lehr get decisions {decision.asset}`",
        )
    try:
        again = decide_again(decision, inputs)
    except msgspec.DecodeError as error:
        raise LehrError(
            f"the inputs of decision {number} on {decision.asset} cannot be read",
            code="ENF113",
            why=f"they have another form than this version of Lehr records: {error}",
            fix="replay it with the version of Lehr that recorded it",
        ) from error
    return Replay(
        number=number,
        partition=decision.partition,
        asset=decision.asset,
        at=decision.at,
        same=again == decision,
        recorded=decision.condition,
        again=None if again is None else again.condition,
        differences=() if again is None else tuple(_differences(decision, again)),
    )


def _differences(recorded: Decision, again: Decision) -> Iterator[Difference]:
    before, after = plain(recorded), plain(again)
    for name in Decision.__struct_fields__:
        if getattr(recorded, name) != getattr(again, name):
            yield Difference(name, before[name], after[name])


def _not_there(reading: Reading, number: int) -> LehrError:
    """Numbers grow, and all partitions of a store share them."""
    newest = next((at for at, _decision in reading.records.decisions(reading.partition, None, 1)), 0)
    if number > newest or number < 1:
        return LehrError(
            f"partition {reading.partition} has no decision {number}",
            code="ENF114",
            why=f"the newest is {newest}" if newest else "there is none yet",
            fix="see `lehr get decisions`",
        )
    return LehrError(
        f"partition {reading.partition} does not have decision {number} any more",
        code="ENF115",
        why="it was pruned, or is of another partition",
        fix="see `lehr get decisions`; `lehr run --prune-older-than` sets how much is kept",
    )
