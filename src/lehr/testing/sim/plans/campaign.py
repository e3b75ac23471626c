"""All plans of a scenario, over all processors."""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from lehr.base.errors import LehrError
from lehr.model.types import Registry
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.examples import SCENARIOS
from lehr.testing.sim.plans.plan import Plan, Reference
from lehr.testing.sim.plans.planning import plans_of
from lehr.testing.sim.plans.play import Play
from lehr.testing.sim.plans.pruning import Pruned, prune
from lehr.testing.sim.suite import scratch, silence
from lehr.wiring import registry

_CHUNK = 4


class Judged(msgspec.Struct, frozen=True):
    """Result of a plan.

    Attributes:
        alarms: differences from the run without the fault, one line each; empty if all is well.
        seconds: of virtual time.
    """

    plan: Plan
    alarms: tuple[str, ...]
    seconds: float


class Campaign(msgspec.Struct, frozen=True):
    """A scenario with its reference, and all plans that follow from it."""

    scenario: str
    reference: Reference
    plans: Pruned

    def selected(self, only: str) -> list[Plan]:
        """Plans whose name contains `only`; if one has just this name, that one, pruned or not."""
        pruned = [plan for plan, _reason in self.plans.pruned]
        exact = [plan for plan in (*self.plans.played, *pruned) if plan.name == only]
        return exact or [plan for plan in self.plans.played if only in plan.name]


def campaign(scenario: str, fencing: Fencing = Fencing.NATIVE) -> Campaign:
    """Play the reference of a scenario of `SCENARIOS`, with a provider of this fencing, and plan.

    Raises:
        LehrError: the scenario does not reach its end even without a fault.
    """
    reference = _reference(scenario, fencing)
    plans = plans_of(reference, SCENARIOS[scenario]().declaring)
    return Campaign(scenario, reference, prune(plans, reference))


def judge(campaign: Campaign, plan: Plan) -> Judged:
    """Play one plan."""
    play = played(campaign, plan)
    return Judged(plan, tuple(play.alarms), play.trace.events[-1].at)


def played(campaign: Campaign, plan: Plan) -> Play:
    """The run of one plan, to show its story."""
    with scratch() as folder, silence():
        play = Play(SCENARIOS[campaign.scenario](), _registry(), folder, plan, campaign.reference)
        play.play()
        return play


def judge_all(campaign: Campaign, plans: Sequence[Plan], jobs: int) -> Iterator[Judged]:
    """Play many plans in `jobs` processes, in whatever order they end."""
    if jobs == 1 or len(plans) <= _CHUNK:
        yield from (judge(campaign, plan) for plan in plans)
        return
    # Not forked: inherited threads and locks are not reliable.
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, _begin_worker, (campaign,)) as pool:
        yield from pool.imap_unordered(_judge_here, plans, chunksize=_CHUNK)


def failed(results: Iterable[Judged]) -> list[Judged]:
    """Those that raise an alarm, by name."""
    return sorted((item for item in results if item.alarms), key=lambda item: item.plan.name)


def _reference(scenario: str, fencing: Fencing) -> Reference:
    with scratch() as folder, silence():
        play = Play(SCENARIOS[scenario](), _registry(), folder, fencing=fencing)
        play.play()
    if play.alarms:
        raise LehrError(
            f"the scenario {scenario} fails without any fault",
            why="; ".join(play.alarms[:3]),
            fix="mend that first",
        )
    return play.as_reference()


@functools.cache
def _registry() -> Registry:
    return registry()


_worker: list[Campaign] = []


def _begin_worker(campaign: Campaign) -> None:
    _worker[:] = [campaign]


def _judge_here(plan: Plan) -> Judged:
    return judge(_worker[0], plan)
