"""How long validations took, from recorded ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lehr.model.asset import AssetId
from lehr.model.evidence import Evidence, Fact
from lehr.model.evidence import Validated as ValidatedFact
from lehr.model.operation import Operation
from lehr.rollouts.course import Course, after
from lehr.rollouts.push_samples import brought_content


class Validated(NamedTuple):
    """A unit that was found good, and not declared good by a person.

    Attributes:
        updated_at: since when the content was released to it, in wall-clock seconds.
    """

    unit: str
    updated_at: float
    validated_at: float


def validated_by(course: Course, rollout: str, fact: Fact, at: float) -> Iterator[Validated]:
    """The units that a fact about a rollout, the next one after `course`, found good."""
    last = course.last
    if not isinstance(fact, ValidatedFact) or last is None or last.id != rollout:
        return
    for unit in fact.units:
        if unit in last.updated and unit not in last.promoted:
            yield Validated(unit, last.updated[unit], at)


def validated_in(evidence: Iterable[Evidence]) -> list[Validated]:
    """The units that evidence of one policy found good."""
    course, found = Course(), list[Validated]()
    for item in evidence:
        found += validated_by(course, item.rollout, item.fact, item.at)
        course = after(course, item.rollout, item.fact, item.at)
    return found


def validation_samples(
    found: Iterable[Validated], operations: Iterable[Operation], unit_of: Mapping[AssetId, str]
) -> list[float]:
    """Seconds from the end of a unit's last push to its validation.

    A validation without a push between the release and it is left out.
    """
    ends: dict[str, list[float]] = {}
    for item in operations:
        unit = unit_of.get(item.asset)
        if unit is not None and brought_content(item) and item.ended_at is not None:
            ends.setdefault(unit, []).append(item.ended_at)
    samples = []
    for unit, updated_at, validated_at in found:
        pushed = [at for at in ends.get(unit, ()) if updated_at <= at <= validated_at]
        if pushed:
            samples.append(validated_at - max(pushed))
    return samples
