"""All plans of a scenario, over all processors."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from lehr.base.errors import LehrError
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.examples import SCENARIOS
from lehr.testing.sim.plans.needless_plans import Pruned, prune
from lehr.testing.sim.plans.plan import FaultPlan, Reference
from lehr.testing.sim.plans.plan_harness import PlanHarness
from lehr.testing.sim.plans.plan_list import plans_of
from lehr.testing.sim.suite import scratch, silence, spread
from lehr.wiring import registry

_FEW = 4
"""Plans for which starting processes does not pay."""


class Judged(msgspec.Struct, frozen=True):
    """Result of a plan.

    Attributes:
        alarms: differences from the run without the fault, one line each; empty if all is well.
        seconds: of virtual time.
    """

    plan: FaultPlan
    alarms: tuple[str, ...]
    seconds: float


class Campaign(msgspec.Struct, frozen=True):
    """A scenario with its reference, and all plans that follow from it."""

    scenario: str
    reference: Reference
    plans: Pruned

    def selected(self, only: str) -> list[FaultPlan]:
        """Plans whose name contains `only`; if one has just this name, that one, pruned or not."""
        pruned = [plan for plan, _reason in self.plans.pruned]
        exact = [plan for plan in (*self.plans.played, *pruned) if plan.name == only]
        return exact or [plan for plan in self.plans.played if only in plan.name]


def campaign(scenario: str, fencing: Fencing = Fencing.NATIVE) -> Campaign:
    """PlanHarness the reference of a scenario of `SCENARIOS`, with a provider of this fencing, and plan.

    Raises:
        LehrError: the scenario does not reach its end even without a fault.
    """
    reference = _reference(scenario, fencing)
    plans = plans_of(reference, SCENARIOS[scenario]().declaring)
    return Campaign(scenario, reference, prune(plans, reference))


def judge(campaign: Campaign, plan: FaultPlan) -> Judged:
    """PlanHarness one plan."""
    play = played(campaign, plan)
    return Judged(plan, tuple(play.alarms), play.trace.events[-1].at)


def played(campaign: Campaign, plan: FaultPlan) -> PlanHarness:
    """The run of one plan, to show its story."""
    return _run(campaign.scenario, plan, campaign.reference)


def judge_all(campaign: Campaign, plans: Sequence[FaultPlan], jobs: int) -> Iterator[Judged]:
    """PlanHarness many plans in `jobs` processes, in whatever order they end."""
    yield from spread(functools.partial(judge, campaign), plans, jobs if len(plans) > _FEW else 1)


def failed(results: Iterable[Judged]) -> list[Judged]:
    """Those that raise an alarm, by name."""
    return sorted((item for item in results if item.alarms), key=lambda item: item.plan.name)


def _reference(scenario: str, fencing: Fencing) -> Reference:
    play = _run(scenario, None, None, fencing)
    if play.alarms:
        raise LehrError(
            f"the scenario {scenario} fails without any fault",
            code="SIM107",
            why="; ".join(play.alarms[:3]),
            fix="fix that first",
        )
    return play.as_reference()


_registry = functools.cache(registry)


def _run(
    scenario: str, plan: FaultPlan | None, reference: Reference | None, fencing: Fencing = Fencing.NATIVE
) -> PlanHarness:
    """A run to its end; without a plan and a reference, it is the reference."""
    with scratch() as folder, silence():
        play = PlanHarness(SCENARIOS[scenario](), _registry(), folder, plan, reference, fencing)
        play.play()
    return play
