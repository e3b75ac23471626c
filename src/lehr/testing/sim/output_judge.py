"""Outputs that are known, seen from outside: by what was written, and by what production has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from lehr.model.decision import Decision, Status
from lehr.model.outputs import Outputs
from lehr.model.reason import Reason
from lehr.model.writes import KeepOutputs

_UNKNOWN = re.compile(r"output `(\w+)` of (\S+) is not known yet")


class OutputJudge:
    """Invariants I7, I8 and I12: outputs outlive their process, and nothing waits for one that is known."""

    def __init__(self, broken: Callable[[str, str], None]) -> None:
        """`broken` is called with the rule and what breaks it."""
        self._broken = broken
        self._known: dict[str, Outputs] = {}

    def kept(self, write: KeepOutputs, answer: object) -> None:
        """The outputs of an asset have become durable, or are forgotten."""
        outputs = write.outputs
        if outputs.values:
            self._known[outputs.asset] = outputs
        else:
            self._known.pop(outputs.asset, None)

    def decided(self, decision: Decision) -> None:
        """A turn has ended: it knows what was written before it began, by this process or another one."""
        condition, awaited = decision.condition, list(self._awaited(decision))
        if awaited and condition.reason == Reason.DIFF_FAILED:
            self._broken("I8", f"{decision.asset} waits for an output, and is reported as failed")
        known = [self._known.get(id) for id, name in awaited]
        if condition.reason == Reason.OUTPUT_UNKNOWN and any(
            outputs is not None and name in outputs.values and outputs.at < decision.at
            for outputs, (_id, name) in zip(known, awaited, strict=True)
        ):
            self._broken("I12", f"{decision.asset} waits for an output that is known: {condition.message}")

    def are_known(self, decision: Decision) -> bool:
        """Whether an asset waits for outputs, and all of them are known."""
        awaited = list(self._awaited(decision))
        return bool(awaited) and all(
            id in self._known and name in self._known[id].values for id, name in awaited
        )

    def at_rest(self, id: str, status: Status, names: Mapping[str, str]) -> Iterator[str]:
        """Violations in the outputs of an asset at rest, where production has these `names`."""
        known = self._known.get(id)
        name = None if known is None else known.values.get("name")
        if status is Status.TURNED_DOWN and known is not None:
            yield f"I7: {id} is removed, and its outputs are still known"
        elif status is Status.CONVERGED and name != names.get(id):
            yield f"I12: the name of {id} is {names.get(id)!r}, and known as {name!r}"

    def _awaited(self, decision: Decision) -> Iterator[tuple[str, str]]:
        for name, id in _UNKNOWN.findall(decision.condition.message):
            yield id, name
