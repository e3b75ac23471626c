"""A corpus of recorded canaries of which the truth is known.

python -m benchmarks.canary.corpus    writes the recordings that are checked in

A recording is what `lehr validate-canary --from` reads. Everything is seeded.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.canary_judge import poisson
from lehr.canary import CANARY, CONTROL

RECORDED = Path(__file__).parent / "recorded"
BEGIN = 1_767_225_600
HEADER = "time,group,replica,requests,errors"
EVERY = 30
RATE = 0.01

FULL = 100.0
"""Requests per second and replica at full traffic."""

RATIOS = {"good": 1.0, "mild": 1.5, "bad": 2.0, "unknown": 1.0}
"""Errors of the canary per error of a control, by variant. Of `unknown`, the canary's errors are not measured
from the third minute on: nobody can know whether it is good, so it must not pass."""


@dataclass(frozen=True)
class Shape:
    """What happens to all replicas, or to the canary without being wrong.

    Attributes:
        spread: standard deviation of the logarithm of a replica's rate of errors.
        noise: each replica's rate is multiplied by a Gamma variable of this shape in each minute; 0 for none.
        daily: traffic, rate of errors and the canary's part of the traffic follow a wave.
        leak: errors grow during the first half; a wrong canary's grow more than those of the controls.
        cold: by how much more errors a canary has in its first second; the excess shrinks by half each 15 s.
        missing: rows and cells are missing, and a canary is away for a sixth of the time.
        restarts: probability per replica and minute that its counters begin again.
        traffic: in parts of the level's.
    """

    name: str
    spread: float = 0.0
    noise: float = 0.0
    daily: bool = False
    leak: bool = False
    cold: float = 0.0
    missing: bool = False
    restarts: float = 0.0
    traffic: float = 1.0

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that it has."""
        return ("good", "mild", "bad", "unknown") if self.missing else ("good", "mild", "bad")


SHAPES = (
    Shape("steady"),
    Shape("noisy", noise=2.0),
    Shape("heterogeneous", spread=0.15),
    Shape("daily-wave", daily=True),
    Shape("slow-leak", leak=True),
    Shape("start-up", cold=8.0),
    Shape("missing-series", missing=True),
    Shape("counter-reset", restarts=0.02),
    Shape("low-traffic", traffic=0.01),
)


@dataclass(frozen=True)
class Service:
    """How large a service is, and how long it is recorded.

    Attributes:
        traffic: requests per second and replica.
    """

    traffic: float = FULL
    canaries: int = 3
    controls: int = 7
    minutes: int = 120


SMALL = Service(canaries=2, controls=4, minutes=15)
"""The size of the recordings that are checked in: 186 rows."""


def recording(shape: Shape, variant: str, service: Service, seed: int) -> Iterator[str]:
    """The lines of a recording."""
    yield HEADER
    chance = random.Random(f"{shape.name}/{variant}/{service}/{seed}")
    replicas = [
        _Replica(group, f"{group}-{number}", shape, RATIOS[variant], service, chance)
        for group, size in ((CANARY, service.canaries), (CONTROL, service.controls))
        for number in range(size)
    ]
    for second in range(0, service.minutes * 60 + 1, EVERY):
        for number, replica in enumerate(replicas):
            if second:
                replica.serve(second)
            if not (shape.missing and _away(chance, second, number, service)):
                unseen = variant == "unknown" and second >= 180 and replica.group == CANARY
                yield replica.row(
                    second, with_errors=not (unseen or (shape.missing and chance.random() < 0.05))
                )


def _away(chance: random.Random, second: int, number: int, service: Service) -> bool:
    gone = service.minutes * 10 <= second < service.minutes * 20 and number == 0
    return gone or chance.random() < 0.1


class _Replica:
    """Counters of one replica."""

    def __init__(
        self, group: str, name: str, shape: Shape, ratio: float, service: Service, chance: random.Random
    ) -> None:
        self.group = group
        self.name = name
        self._shape, self._ratio, self._service, self._chance = shape, ratio, service, chance
        self._factor = math.exp(chance.gauss(0, shape.spread))
        self._noise = 1.0
        begun = group == CONTROL
        self._requests = chance.randrange(10**5, 10**6) if begun else 0
        self._errors = round(self._requests * RATE)

    def serve(self, second: int) -> None:
        """Serve the time until a second since the begin."""
        shape, chance = self._shape, self._chance
        if shape.noise and second % 60 == EVERY:
            self._noise = chance.gammavariate(shape.noise, 1 / shape.noise)
        wave = 1 + 0.8 * math.sin(2 * math.pi * second / 60 / self._service.minutes) if shape.daily else 1.0
        served = self._service.traffic * shape.traffic * EVERY * wave
        if shape.daily and self.group == CANARY:
            served /= wave + 1
        if shape.restarts and chance.random() < shape.restarts * EVERY / 60:
            self._requests = self._errors = 0
            served *= chance.random()
        requests = poisson(chance, served)
        rate = min(
            1.0, RATE * self._factor * self._noise * self._times(second) * (2 - wave if shape.daily else 1)
        )
        self._requests += requests
        self._errors += min(requests, poisson(chance, requests * rate))

    def _times(self, second: int) -> float:
        """How many times the usual errors it has."""
        shape, grown = self._shape, min(1.0, second / 30 / self._service.minutes)
        canary = self.group == CANARY
        usual = 1 + grown if shape.leak else 1.0
        if canary and self._ratio > 1:
            usual *= 1 + (self._ratio - 1) * (grown if shape.leak else 1.0)
        cold = shape.cold * 0.5 ** (max(0, second - EVERY / 2) / 15) if canary else 0.0
        return usual + cold

    def row(self, second: int, *, with_errors: bool) -> str:
        """A line of the recording."""
        errors = self._errors if with_errors else ""
        return f"{BEGIN + second},{self.group},{self.name},{self._requests},{errors}"


def recorded() -> Iterator[tuple[Path, str]]:
    """The files that are checked in, and their text."""
    for shape in SHAPES:
        for variant in shape.variants:
            if variant != "mild":
                lines = recording(shape, variant, SMALL, 0)
                yield RECORDED / f"{shape.name}-{variant}.csv", "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Write the files that are checked in."""
    RECORDED.mkdir(exist_ok=True)
    for file, text in recorded():
        file.write_text(text)


if __name__ == "__main__":
    main()
