"""Looks of simulated replicas, for tests of the judge."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from lehr.canary import CANARY, CONTROL, Look, ReplicaCounts

COUNTERS = ["requests", "errors"]


def poisson(chance: random.Random, mean: float) -> int:
    if mean > 50:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    count, product, floor = 0, chance.random(), math.exp(-mean)
    while product > floor:
        count, product = count + 1, product * chance.random()
    return count


def looks(
    seed: int,
    *,
    count: int = 60,
    requests: float = 1200,
    rate: float = 0.01,
    ratio: float = 1.0,
    spread: float = 0.0,
    canaries: int = 3,
    controls: int = 7,
    onset: int = 0,
) -> Iterator[Look]:
    """A look each minute; the canary's rate of errors is `ratio` times that of the controls."""
    chance = random.Random(seed)
    groups = [(CANARY, canaries), (CONTROL, controls)]
    replicas = [
        (group, str(number), math.exp(chance.gauss(0, spread)))
        for group, size in groups
        for number in range(size)
    ]
    for minute in range(count):
        rows = []
        for group, name, factor in replicas:
            wrong = ratio if group == CANARY and minute >= onset else 1.0
            served = poisson(chance, requests)
            failed = poisson(chance, served * min(1.0, rate * factor * wrong))
            rows.append(ReplicaCounts(group, name, 60.0, {"requests": served, "errors": failed}))
        yield Look((minute + 1) * 60.0, tuple(rows))
