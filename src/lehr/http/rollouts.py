"""Resources with the numbers behind rollouts: forecasts, and the evidence of canary analyses."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lehr.http.explanations import require_rollouts
from lehr.http.problems import meaning
from lehr.http.questions import Catalogue, OfPartition, Question, Representation
from lehr.rollouts.canary_trace import CanaryTrace
from lehr.strategist.overview import RolloutForecast

ROLLOUTS = Catalogue()

PolicyId = Annotated[str, Meta(description="Id of the rollout policy.", max_length=200)]


class OfForecast(OfPartition, frozen=True):
    """Of which policy, and of which rollout."""

    policy: PolicyId
    every_unit: Annotated[
        bool, Meta(description="Of a rollout of new content of every unit, which would begin now.")
    ] = False


class OfCanary(OfPartition, frozen=True):
    """Of which policy."""

    policy: PolicyId


@ROLLOUTS.answered_by(
    "rollout-forecast",
    "When the units of a rollout will be updated and validated: of the one under way, or of the next.",
    OfForecast,
    RolloutForecast,
    whole=True,
)
def _forecast(question: Question, asked: OfForecast) -> Representation:
    reading = question.reading(asked.partition)

    def make() -> RolloutForecast:
        with meaning("NotFound", "see /rollouts"):
            rollouts = require_rollouts(question, reading, asked.policy)
            return rollouts.forecast(asked.policy, every_unit=asked.every_unit)

    return Representation(make)


@ROLLOUTS.answered_by(
    "rollout-canary",
    "The canary analysis of a policy's newest rollout: its evidence, look by look, and its end; or null.",
    OfCanary,
    CanaryTrace | None,
    whole=True,
)
def _canary(question: Question, asked: OfCanary) -> Representation:
    reading = question.reading(asked.partition)

    def make() -> CanaryTrace | None:
        with meaning("NotFound", "see /rollouts"):
            return require_rollouts(question, reading, asked.policy).canary(asked.policy)

    return Representation(make)
