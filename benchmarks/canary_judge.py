"""How often the judge of canaries errs, and how soon it decides.

python -m benchmarks.canary_judge [RUNS]    so many simulated rollouts for each scenario

Looks at simulated replicas every minute for two hours. The peers see the same counts: a two-sample z-test at
each look (at 1 %), as dashboards invite people to do, and a single one at the end, which cannot stop early.

False alarms are scenarios in which nothing is wrong with the canary; their upper bound is that of Clopper and
Pearson (95 %). Everything is seeded.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from dataclasses import dataclass
from statistics import NormalDist

from benchmarks.figures import Peer, percentile, report, size
from lehr.canary import CANARY, CONTROL, Judge, Judgement, Look, Metric, Outcome, ReplicaCounts

_LOOKS = 120
_EVERY = 60.0
_ALPHA = 0.01
_JUDGE = Judge(metrics=(Metric("errors", events="errors"),), alpha=_ALPHA)
_LIMIT = NormalDist().inv_cdf(1 - _ALPHA)


@dataclass(frozen=True)
class Scenario:
    """Replicas and what happens to them.

    Attributes:
        traffic: requests per second and replica.
        rate: of errors per request.
        ratio: of the canary's rate.
        spread: standard deviation of the logarithm of a replica's rate.
        noise: each replica's rate is multiplied by a Gamma variable of this shape in each minute; 0 for none.
        bursts: probability per replica and minute of a burst of ten times the errors for three minutes.
        incidents: the same, with twenty times the errors, for all replicas at once.
        daily: traffic follows a wave, and the canary's share of it shrinks.
        onset: minutes until the ratio applies.
        restarts: probability per replica and minute that its counters begin again, losing a part of a minute.
    """

    name: str
    wrong: bool = False
    canaries: int = 3
    controls: int = 7
    traffic: float = 20.0
    rate: float = 0.01
    ratio: float = 1.0
    spread: float = 0.0
    noise: float = 0.0
    bursts: float = 0.0
    incidents: float = 0.0
    daily: bool = False
    onset: int = 0
    restarts: float = 0.0


SCENARIOS = (
    Scenario("plain"),
    Scenario("replicas differ by 15 %", spread=0.15),
    Scenario("replicas differ by 15 %, 3 controls", spread=0.15, controls=3),
    Scenario("replicas differ by 15 %, 1 canary, 1 control", spread=0.15, canaries=1, controls=1),
    Scenario("replicas differ by 30 %", spread=0.3),
    Scenario("daily traffic", daily=True),
    Scenario("noisy minutes", noise=1.0),
    Scenario("bursts in single replicas", bursts=0.01),
    Scenario("incidents in all replicas", incidents=0.02),
    Scenario("restarts", restarts=0.02),
    Scenario("a hundredth of the traffic", traffic=0.2),
    Scenario("30 % errors", True, ratio=30.0),
    Scenario("doubled", True, ratio=2.0),
    Scenario("doubled, five times the traffic", True, ratio=2.0, traffic=100.0),
    Scenario("doubled, a tenth of the traffic", True, ratio=2.0, traffic=2.0),
    Scenario("doubled, a hundredth of the traffic", True, ratio=2.0, traffic=0.2),
    Scenario("doubled, replicas differ by 15 %", True, ratio=2.0, spread=0.15),
    Scenario("doubled after an hour", True, ratio=2.0, onset=60),
    Scenario("1.5 times", True, ratio=1.5),
    Scenario("1.5 times, five times the traffic", True, ratio=1.5, traffic=100.0),
    Scenario("1.5 times, a tenth of the traffic", True, ratio=1.5, traffic=2.0),
    Scenario("1.5 times, a hundredth of the traffic", True, ratio=1.5, traffic=0.2),
)


class Rollout:
    """One simulated rollout."""

    def __init__(self, scenario: Scenario, chance: random.Random) -> None:
        self._scenario = scenario
        self._chance = chance
        counts = {CANARY: scenario.canaries, CONTROL: scenario.controls}
        self._replicas = {
            (group, str(number)): math.exp(chance.gauss(0, scenario.spread))
            for group, count in counts.items()
            for number in range(count)
        }
        self._left: Counter[tuple[str, str]] = Counter()

    def look(self, minute: int) -> Look:
        scenario = self._scenario
        incident = self._in_burst(("", ""), scenario.incidents)
        rows = []
        for key, factor in self._replicas.items():
            rate = scenario.rate * factor * (20 if incident else 1)
            rate *= 10 if self._in_burst(key, scenario.bursts) else 1
            if scenario.noise:
                rate *= self._chance.gammavariate(scenario.noise, 1 / scenario.noise)
            if key[0] == CANARY and minute >= scenario.onset:
                rate *= scenario.ratio
            counted = self._traffic(key[0], minute)
            requests = poisson(self._chance, counted)
            errors = poisson(self._chance, requests * min(1.0, rate))
            rows.append(ReplicaCounts(*key, seconds=_EVERY, counts={"requests": requests, "errors": errors}))
        return Look((minute + 1) * _EVERY, tuple(rows))

    def _traffic(self, group: str, minute: int) -> float:
        scenario = self._scenario
        traffic = scenario.traffic * _EVERY
        if scenario.restarts and self._chance.random() < scenario.restarts:
            traffic *= self._chance.random()
        if scenario.daily:
            wave = math.sin(math.pi * minute / _LOOKS)
            traffic *= 0.1 + (0.9 * wave if group == CONTROL else 0.3 * wave)
        return traffic

    def _in_burst(self, key: tuple[str, str], probability: float) -> bool:
        if not probability:
            return False
        if not self._left[key] and self._chance.random() < probability:
            self._left[key] = 3
        burning = self._left[key] > 0
        self._left[key] -= burning
        return burning


def poisson(chance: random.Random, mean: float) -> int:
    """A Poisson variable; a rounded normal one where the mean is large."""
    if mean > 50:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    count, product, floor = 0, chance.random(), math.exp(-mean)
    while product > floor:
        count, product = count + 1, product * chance.random()
    return count


def z_value(events: list[float], exposure: list[float]) -> float:
    """Of the test that two shares are equal."""
    share = sum(events) / sum(exposure) if sum(exposure) else 0.0
    variance = share * (1 - share) * sum(1 / item for item in exposure) if min(exposure) else 0.0
    return (events[0] / exposure[0] - events[1] / exposure[1]) / math.sqrt(variance) if variance > 0 else 0.0


@dataclass
class Result:
    """How rollouts of a scenario ended: minutes until then."""

    failed: list[int]
    passed: list[int]
    repeated: int = 0
    single: int = 0


def played(scenario: Scenario, runs: int) -> Result:
    """Judge so many rollouts; the judge stops at FAIL, the tests see all looks."""
    result = Result([], [])
    for run in range(runs):
        chance = random.Random(f"{scenario.name}/{run}")
        rollout, judgement = Rollout(scenario, chance), Judgement(_JUDGE, ["requests", "errors"])
        events, exposure = [0.0, 0.0], [0.0, 0.0]
        alarmed, ended = False, False
        passed = 0
        for minute in range(_LOOKS):
            look = rollout.look(minute)
            if not ended:
                outcome = judgement.add(look)
                if outcome is Outcome.FAIL:
                    result.failed.append(minute + 1)
                    ended = True
                passed = (passed or minute + 1) if outcome is Outcome.PASS else 0
            for item in look.replicas:
                group = item.group == CONTROL
                events[group] += item.counts["errors"]
                exposure[group] += item.counts["requests"]
            alarmed = alarmed or z_value(events, exposure) > _LIMIT
        result.repeated += alarmed
        result.single += z_value(events, exposure) > _LIMIT
        if passed:
            result.passed.append(passed)
    return result


def upper_bound(found: int, runs: int) -> float:
    """Of a share, one-sided 95 %: Clopper and Pearson, by bisection."""
    low, high = found / runs, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        terms = (
            math.exp(
                math.lgamma(runs + 1)
                - math.lgamma(index + 1)
                - math.lgamma(runs - index + 1)
                + index * math.log(middle)
                + (runs - index) * math.log1p(-middle)
            )
            for index in range(found + 1)
        )
        low, high = (middle, high) if sum(terms) > 0.05 else (low, middle)
    return high


def main() -> None:
    """Report each scenario as two lines: failed, and passed."""
    runs = size(200)
    for scenario in SCENARIOS:
        begun = time.process_time()
        result = played(scenario, runs)
        facts = {
            "scenario": scenario.name,
            "wrong": scenario.wrong,
            "single_z_test": result.single / runs,
            "upper_bound": round(upper_bound(len(result.failed), runs), 5)
            if len(result.failed) < runs
            else 1.0,
            "minutes_median": percentile(result.failed, 50) if result.failed else None,
            "minutes_95": percentile(result.failed, 95) if result.failed else None,
            "ms_each": round((time.process_time() - begun) * 1000 / runs, 1),
        }
        peer = Peer("a z-test at each look", result.repeated / runs)
        report("failed", len(result.failed) / runs, "share", runs, peer=peer, **facts)
        minutes = percentile(result.passed, 50) if result.passed else None
        report(
            "passed", len(result.passed) / runs, "share", runs, scenario=scenario.name, minutes_median=minutes
        )


if __name__ == "__main__":
    main()
