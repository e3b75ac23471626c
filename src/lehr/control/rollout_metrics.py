"""Rollouts in the text format of Prometheus, by policy. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lehr.control.prometheus_text import family, label
from lehr.rollouts.figures import RolloutFigures

_MOST_POLICIES = 100
"""The rollouts of further policies are added up as those of `Other`."""

_OTHER = "Other"


def rollout_families(rollouts: Sequence[RolloutFigures], now: float) -> Iterator[str]:
    """The states of rollouts, their units by how far they are, and their ages."""
    states, units, ages = Counter[tuple[str, str]](), Counter[tuple[str, str]](), dict[str, float]()
    for number, item in enumerate(sorted(rollouts, key=lambda item: item.policy)):
        policy = label(item.policy) if number < _MOST_POLICIES else _OTHER
        states[policy, item.state] += 1
        if item.begun_at is None:
            continue
        ages[policy] = max(now - item.begun_at, ages.get(policy, 0.0))
        for name in ("waiting", "updated", "validated", "failed"):
            units[policy, name] += getattr(item, name)
    yield from family(
        "lehr_rollout_state",
        "gauge",
        "1 for the state of the rollouts of each policy.",
        _samples("lehr_rollout_state", states),
    )
    yield from family(
        "lehr_rollout_units",
        "gauge",
        "Units of rollouts under way, by how far they are.",
        _samples("lehr_rollout_units", units),
    )
    yield from family(
        "lehr_rollout_seconds",
        "gauge",
        "Time since rollouts under way have begun.",
        [f'lehr_rollout_seconds{{policy="{policy}"}} {age:.1f}' for policy, age in ages.items()],
    )


def _samples(name: str, found: Counter[tuple[str, str]]) -> Iterator[str]:
    for (policy, state), count in found.items():
        yield f'{name}{{policy="{policy}",state="{state}"}} {count}'
