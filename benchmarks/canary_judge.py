"""How often the judge of canaries errs, and how soon it decides.

python -m benchmarks.canary_judge [RUNS] [SCENARIO]    so many simulated rollouts for each scenario, or one

Looks at simulated replicas every minute for two hours. The peers see the same counts: a two-sample z-test at
each look (at 1 %), as dashboards invite people to do; a single one at the end, which cannot stop early; and a
rank test at the end of the rates of replicas and minutes (Mann-Whitney at 98 %, and a mean beyond 1.25
times), as Kayenta does it. Precision and recall are those of FAIL, over all scenarios.

False alarms are scenarios in which nothing is wrong with the canary; their upper bound is that of Clopper and
Pearson (95 %). Everything is seeded.
"""

from __future__ import annotations

import math
import random
import sys
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
        leak: minutes in which the ratio grows to its full size.
        gone: minutes until the canary stops reporting; 0 for never.
        restarts: probability per replica and minute that its counters begin again, losing a part of a minute.
    """

    name: str
    wrong: bool = False
    canaries: int = 3
    controls: int = 7
    traffic: float = 100.0
    rate: float = 0.01
    ratio: float = 1.0
    spread: float = 0.0
    noise: float = 0.0
    bursts: float = 0.0
    incidents: float = 0.0
    daily: bool = False
    onset: int = 0
    leak: int = 0
    gone: int = 0
    restarts: float = 0.0


SCENARIOS = (
    Scenario("plain"),
    Scenario("replicas differ by 15 %", spread=0.15),
    Scenario("replicas differ by 15 %, 3 controls", spread=0.15, controls=3),
    Scenario("replicas differ by 15 %, 1 canary, 1 control", spread=0.15, canaries=1, controls=1),
    Scenario("replicas differ by 30 %", spread=0.3),
    Scenario("daily traffic", daily=True),
    Scenario("noisy minutes", noise=1.0),
    Scenario("noisy minutes, 1 canary, 1 control", noise=4.0, canaries=1, controls=1),
    Scenario("bursts in single replicas", bursts=0.01),
    Scenario("incidents in all replicas", incidents=0.02),
    Scenario("restarts", restarts=0.02),
    Scenario("the canary stops reporting", gone=60),
    Scenario("a hundredth of the traffic", traffic=1.0),
    Scenario("30 % errors", True, ratio=30.0),
    Scenario("doubled", True, ratio=2.0),
    Scenario("doubled, a fifth of the traffic", True, ratio=2.0, traffic=20.0),
    Scenario("doubled, a tenth of the traffic", True, ratio=2.0, traffic=10.0),
    Scenario("doubled, a hundredth of the traffic", True, ratio=2.0, traffic=1.0),
    Scenario("doubled, replicas differ by 15 %", True, ratio=2.0, spread=0.15),
    Scenario("doubled, bursts in single replicas", True, ratio=2.0, bursts=0.01),
    Scenario("doubled, 1 canary, 1 control", True, ratio=2.0, canaries=1, controls=1),
    Scenario("doubled after an hour", True, ratio=2.0, onset=60),
    Scenario("three times, slowly within an hour", True, ratio=3.0, onset=30, leak=60),
    Scenario("1.5 times", True, ratio=1.5),
    Scenario("1.5 times, a tenth of the traffic", True, ratio=1.5, traffic=10.0),
    Scenario("1.5 times, a hundredth of the traffic", True, ratio=1.5, traffic=1.0),
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
            if scenario.gone and minute >= scenario.gone and key[0] == CANARY:
                continue
            rate = scenario.rate * factor * (20 if incident else 1)
            rate *= 10 if self._in_burst(key, scenario.bursts) else 1
            if scenario.noise:
                rate *= self._chance.gammavariate(scenario.noise, 1 / scenario.noise)
            if key[0] == CANARY and minute >= scenario.onset:
                grown = min(1.0, (minute - scenario.onset) / scenario.leak) if scenario.leak else 1.0
                rate *= 1 + (scenario.ratio - 1) * grown
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


def rank_test(canary: list[float], control: list[float]) -> bool:
    """Whether the canary's values are larger: Mann and Whitney, with the correction for ties."""
    if not canary or not control or sum(canary) * len(control) <= 1.25 * sum(control) * len(canary):
        return False
    ranked = sorted([(value, 1) for value in canary] + [(value, 0) for value in control])
    total, ties, at = 0.0, 0.0, 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        total += sum(group for _, group in ranked[at:end]) * (at + 1 + end) / 2
        ties += (end - at) ** 3 - (end - at)
        at = end
    first, second, both = len(canary), len(control), len(ranked)
    variance = first * second / 12 * (both + 1 - ties / (both * (both - 1)))
    larger = total - first * (first + 1) / 2 - first * second / 2
    return variance > 0 and larger / math.sqrt(variance) > NormalDist().inv_cdf(0.99)


@dataclass
class Result:
    """How rollouts of a scenario ended: minutes until then."""

    failed: list[int]
    passed: list[int]
    repeated: int = 0
    ever_passed: int = 0
    single: int = 0
    ranked: int = 0


def played(scenario: Scenario, runs: int) -> Result:
    """Judge so many rollouts; the judge stops at FAIL, the tests see all looks."""
    result = Result([], [])
    for run in range(runs):
        chance = random.Random(f"{scenario.name}/{run}")
        rollout, judgement = Rollout(scenario, chance), Judgement(_JUDGE, ["requests", "errors"])
        events, exposure = [0.0, 0.0], [0.0, 0.0]
        rates: tuple[list[float], list[float]] = ([], [])
        alarmed, ended = False, False
        passed = 0
        ever = False
        for minute in range(_LOOKS):
            look = rollout.look(minute)
            if not ended:
                outcome = judgement.add(look)
                if outcome is Outcome.FAIL:
                    result.failed.append(minute + 1)
                    ended = True
                passed = (passed or minute + 1) if outcome is Outcome.PASS else 0
                ever = ever or passed > 0
            for item in look.replicas:
                group = item.group == CONTROL
                events[group] += item.counts["errors"]
                exposure[group] += item.counts["requests"]
                if item.counts["requests"]:
                    rates[group].append(item.counts["errors"] / item.counts["requests"])
            alarmed = alarmed or z_value(events, exposure) > _LIMIT
        result.ever_passed += ever
        result.repeated += alarmed
        result.single += z_value(events, exposure) > _LIMIT
        result.ranked += rank_test(*rates)
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
    """Report each scenario as two lines: failed, and passed; and precision and recall."""
    runs = size(200)
    wanted = " ".join(sys.argv[2:])
    found: list[tuple[Scenario, Result]] = []
    for scenario in SCENARIOS:
        if wanted in ("", scenario.name):
            begun = time.process_time()
            result = played(scenario, runs)
            found.append((scenario, result))
            show(scenario, result, runs, (time.process_time() - begun) * 1000 / runs)
    if not wanted:
        wrong = [result for scenario, result in found if scenario.wrong]
        right = [result for scenario, result in found if not scenario.wrong]
        hits, false = sum(len(item.failed) for item in wrong), sum(len(item.failed) for item in right)
        peer_hits, peer_false = sum(item.ranked for item in wrong), sum(item.ranked for item in right)
        peer = "a rank test at the end"
        precision = Peer(peer, peer_hits / max(1, peer_hits + peer_false))
        report("precision", hits / max(1, hits + false), "share", runs, peer=precision)
        recall = Peer(peer, peer_hits / (len(wrong) * runs))
        report("recall", hits / (len(wrong) * runs), "share", runs, peer=recall)


def show(scenario: Scenario, result: Result, runs: int, milliseconds: float) -> None:
    """Report one scenario."""
    failed = len(result.failed)
    facts = {
        "scenario": scenario.name,
        "wrong": scenario.wrong,
        "single_z_test": result.single / runs,
        "rank_test": result.ranked / runs,
        "upper_bound": round(upper_bound(failed, runs), 5) if failed < runs else 1.0,
        "within_3_minutes": sum(minutes <= 3 for minutes in result.failed) / runs,
        "minutes_median": percentile(result.failed, 50) if result.failed else None,
        "minutes_95": percentile(result.failed, 95) if result.failed else None,
        "ms_each": round(milliseconds, 1),
    }
    peer = Peer("a z-test at each look", result.repeated / runs)
    report("failed", failed / runs, "share", runs, peer=peer, **facts)
    minutes = percentile(result.passed, 50) if result.passed else None
    report(
        "passed",
        len(result.passed) / runs,
        "share",
        runs,
        scenario=scenario.name,
        at_any_look=result.ever_passed / runs,
        minutes_median=minutes,
    )


if __name__ == "__main__":
    main()
