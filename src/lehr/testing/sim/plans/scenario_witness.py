"""What is written in a scenario, and the part of it that two runs share: no identifiers, no times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lehr.base.digest import Digest, digest
from lehr.model.attempt import Attempt
from lehr.model.decision import Condition, Decision
from lehr.model.operation import Operation
from lehr.model.types import Registry
from lehr.model.writes import Reschedule
from lehr.testing.sim.trace import Trace
from lehr.testing.sim.witness import Witness


class ScenarioWitness(Witness):
    """A witness of scenarios, which have limits of their own.

    Attributes:
        conditions: the last one of each asset.
        revision: that the last pass over the source has read; empty if it could not.
    """

    def __init__(self, registry: Registry, trace: Trace) -> None:
        super().__init__(registry, trace)
        self.conditions: dict[str, Condition] = {}
        self.revision = ""
        self._answers[Reschedule] = lambda write, answer: self._keep_condition(write.key.id, write.condition)

    @property
    def incarnation(self) -> str:
        """Digest of the newest one; empty before the first."""
        return "" if self.newest is None else self.newest.header.digest

    def entries(self) -> dict[str, tuple[str, str]]:
        """(content digest, goal) by asset, as the ledger has them."""
        return {id: (entry.content_digest, entry.goal) for id, entry in self.ledger.items()}

    def all_conditions(self) -> dict[str, tuple[str, str]]:
        """Status and reason by asset."""
        return {id: (item.status, item.reason) for id, item in self.conditions.items()}

    def digest(self, production: Mapping[str, Any]) -> Digest:
        """Equal for equal states: what is written, and what `production` holds."""
        pushes = sorted((id, item.goal, item.content_digest, item.result) for id, item in self.open.items())
        controls = sorted(
            f"{item.kind} {item.selector} {item.incarnation} {item.diff_digest}"
            for item in self.controls.values()
        )
        written = (self.entries(), pushes, self.incarnation, self.revision, controls)
        return digest((self.all_conditions(), *written, production))

    def _limits(self, operation: Operation, asset: object) -> None:
        """Those of the examples are for their own tests."""

    def _decided(self, decision: Decision) -> None:
        super()._decided(decision)
        self._keep_condition(decision.asset, decision.condition)

    def _keep_condition(self, id: str, condition: Condition) -> None:
        self.conditions[id] = condition

    def _attempted(self, attempt: Attempt) -> None:
        super()._attempted(attempt)
        self.revision = attempt.sources[0].revision if attempt.sources else ""
