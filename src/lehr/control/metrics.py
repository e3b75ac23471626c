"""Figures of a running control plane, in the text format of Prometheus.

They are counted as things happen: an answer takes the same time for ten assets and for a million. None is
labelled by an asset other than a rollout policy.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lehr import __version__
from lehr.base.clock import Clock
from lehr.base.durations import Durations
from lehr.control.plugin_metrics import plugin_families
from lehr.control.prometheus_text import MEDIA_TYPE, family, histogram, label, value
from lehr.control.restart_count import RestartCount
from lehr.control.rollout_metrics import rollout_families
from lehr.model.asset import AssetId, AssetKey
from lehr.model.attempt import Attempt, Publication
from lehr.model.decision import Condition, Status
from lehr.model.evidence import Ended, RolloutEnd
from lehr.model.operation import Operation, Result
from lehr.model.outputs import Outputs
from lehr.model.writes import Admit, Finish, KeepOutputs, RecordDecision, Refused, Write, WriteReleases
from lehr.rollouts.figures import RolloutFigures
from lehr.sdk.plugin_meter import PluginMeter
from lehr.sdk.store import Standing

__all__ = ["MEDIA_TYPE", "Gauges", "Metrics"]

_TURN_BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0, 60.0)
_PUSH_BOUNDS = (0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)

_MOST_REASONS = 200
"""Checks of users make up reasons of their own: further ones are counted as `Other`."""

Blocked = tuple[Status, str]
"""Status and reason of an asset that is not settled."""


class Gauges(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the moment, which the running program has anyway.

    Attributes:
        unsettled: assets on which something is left to do.
        queued: turns that wait, by plugin.
        epoch: of the lease: how often it was taken, by starts and take-overs.
        source_looked_at: wall-clock seconds; None for never.
        rollouts: those of each policy in force.
        plugins: those that run in other processes.
    """

    partition: str
    assets: int
    unsettled: int
    queued: Mapping[str, int]
    epoch: int
    enforcing: bool
    ready: bool
    source_looked_at: float | None
    rollouts: Sequence[RolloutFigures] = ()
    plugins: Sequence[PluginMeter] = ()


class Metrics:
    """Counts what happens.

    Call `committed` with each commit, `turned` at the end of each turn, and `attempted` after each pass over
    the source. Conditions that were recorded before come from the store: `begin`, read them, `recovered`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turns = Durations(_TURN_BOUNDS)
        self._pushes = {result: Durations(_PUSH_BOUNDS) for result in Result}
        self._open: dict[str, Operation] = {}
        self._publications = Counter[Publication]()
        self._ended = Counter[RolloutEnd]()
        self._started: Counter[str] = Counter()
        self._restarts = RestartCount()
        # By when they began to be unsettled: the first entry is the oldest.
        self._unsettled: dict[AssetId, tuple[float, Blocked]] = {}
        self._blocked: Counter[Blocked] = Counter()
        self._decided: set[AssetId] | None = None

    def begin(self) -> None:
        """Forget all conditions: another process may have changed them."""
        self._unsettled.clear()
        self._blocked.clear()
        self._open.clear()
        self._restarts.begin()
        self._decided = set()

    def recovered(
        self,
        unsettled: Iterable[Standing],
        open_pushes: Iterable[Operation],
        outputs: Iterable[Outputs] = (),
    ) -> None:
        """Add the conditions that the store has, except those that were decided since `begin`."""
        self._restarts.recovered(outputs)
        decided, self._decided = self._decided or set(), None
        later, self._unsettled = self._unsettled, {}
        for item in sorted(unsettled, key=lambda item: item.since):
            if item.asset not in decided:
                self._condition(item.asset, item.condition, item.since)
        self._unsettled |= later
        self._open = {push.id: push for push in open_pushes if push.asset not in decided} | self._open

    def committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        """Count what was committed."""
        for write, answer in zip(writes, answers, strict=True):
            if isinstance(answer, Refused):
                continue
            match write:
                case Admit(operation=push, decision=decision):
                    self._open[push.id] = push
                    self._started[push.purpose] += 1
                    if decision is not None:
                        self._condition(push.asset, decision.condition, decision.at)
                case Finish(operation=id, outcome=outcome, at=at):
                    self._finished(id, outcome.result, at)
                case RecordDecision(decision=decision):
                    self._condition(decision.asset, decision.condition, decision.at)
                case KeepOutputs(outputs=outputs):
                    self._restarts.reported(outputs)
                case WriteReleases(evidence=evidence):
                    self._ended.update(item.fact.how for item in evidence if isinstance(item.fact, Ended))

    def turned(self, _asset: AssetKey, _cause: str, seconds: float) -> None:
        """A turn has ended."""
        self._turns.observe(seconds)

    def attempted(self, attempt: Attempt) -> None:
        """A pass over the source has ended."""
        self._publications[attempt.publication] += 1

    def _finished(self, id: str, result: Result, at: float) -> None:
        push = self._open.get(id)
        if push is None:
            return
        if result is not Result.UNKNOWN:
            del self._open[id]
        self._pushes[result].observe(max(0.0, at - push.started_at))

    def _condition(self, asset: AssetId, condition: Condition, at: float) -> None:
        if self._decided is not None:
            self._decided.add(asset)
        before = self._unsettled.get(asset)
        if before is not None:
            self._blocked[before[1]] -= 1
            if not self._blocked[before[1]]:
                del self._blocked[before[1]]
        if condition.status.settled:
            self._unsettled.pop(asset, None)
            return
        blocked = (condition.status, str(condition.reason))
        if blocked not in self._blocked and len(self._blocked) >= _MOST_REASONS:
            blocked = (condition.status, "Other")
        self._blocked[blocked] += 1
        self._unsettled[asset] = (at if before is None else before[0], blocked)

    def text(self, now: Gauges) -> str:
        """Everything, with the figures of this moment."""
        families = (
            self._of_program(now),
            self._of_assets(now),
            self._of_turns(now),
            self._of_pushes(),
            plugin_families(now.plugins),
            self._of_rollouts(now),
            self._of_source(now),
        )
        return "\n".join(itertools.chain.from_iterable(families)) + "\n"

    def _of_program(self, now: Gauges) -> Iterator[str]:
        info = f'lehr_info{{version="{__version__}",partition="{label(now.partition)}"}} 1'
        yield from family("lehr_info", "gauge", "Version and partition.", [info])
        yield from value("lehr_enforcing", "gauge", "1 while this process has the lease.", int(now.enforcing))
        yield from value("lehr_ready", "gauge", "1 while /readyz answers with 200.", int(now.ready))
        yield from value("lehr_starts_total", "counter", "Starts and take-overs of the partition.", now.epoch)

    def _of_assets(self, now: Gauges) -> Iterator[str]:
        settled = now.assets - now.unsettled
        yield from value("lehr_assets", "gauge", "Assets that are enforced.", now.assets)
        yield from value("lehr_assets_settled", "gauge", "Of these, with nothing left to do.", settled)
        yield from family(
            "lehr_assets_blocked",
            "gauge",
            "Assets that are not settled, by status and reason.",
            [
                f'lehr_assets_blocked{{status="{status}",reason="{label(reason)}"}} {count}'
                for (status, reason), count in sorted(self._blocked.items())
            ],
        )
        oldest = next(iter(self._unsettled.values()), None)
        age = 0.0 if oldest is None else max(0.0, self._clock.now() - oldest[0])
        yield from value(
            "lehr_oldest_unsettled_seconds", "gauge", "Age of the oldest asset that is not settled.", age
        )

    def _of_turns(self, now: Gauges) -> Iterator[str]:
        queued = [
            f'lehr_turns_queued{{plugin="{label(name)}"}} {count}' for name, count in now.queued.items()
        ]
        yield from family("lehr_turns_queued", "gauge", "Turns that wait, by plugin.", queued)
        turns = histogram(self._turns, "lehr_turn_seconds")
        yield from family("lehr_turn_seconds", "histogram", "Durations of turns.", turns)

    def _of_pushes(self) -> Iterator[str]:
        yield from value(
            "lehr_pushes_open", "gauge", "Pushes under way, or whose outcome is unknown.", len(self._open)
        )
        yield from family(
            "lehr_pushes_started_total",
            "counter",
            "Pushes, by purpose.",
            [
                f'lehr_pushes_started_total{{purpose="{name}"}} {count}'
                for name, count in sorted(self._started.items())
            ],
        )
        durations = (
            histogram(found, "lehr_push_seconds", f'result="{result}"')
            for result, found in self._pushes.items()
        )
        yield from family(
            "lehr_push_seconds",
            "histogram",
            "Durations of pushes, by result.",
            itertools.chain.from_iterable(durations),
        )
        yield from family(
            "lehr_restarts_total",
            "counter",
            "Restarts that were not pushes, such as those of programs that had ended, by type.",
            [
                f'lehr_restarts_total{{type="{label(type)}"}} {count}'
                for type, count in sorted(self._restarts.by_type.items())
            ],
        )

    def _of_rollouts(self, now: Gauges) -> Iterator[str]:
        yield from rollout_families(now.rollouts, self._clock.now())
        yield from family(
            "lehr_rollouts_ended_total",
            "counter",
            "Rollouts that have ended, by how.",
            [f'lehr_rollouts_ended_total{{how="{how}"}} {self._ended[how]}' for how in RolloutEnd],
        )

    def _of_source(self, now: Gauges) -> Iterator[str]:
        yield from family(
            "lehr_publications_total",
            "counter",
            "Passes over the source, by result.",
            [
                f'lehr_publications_total{{result="{result}"}} {self._publications[result]}'
                for result in Publication
            ],
        )
        yield from value(
            "lehr_source_looked_at_seconds",
            "gauge",
            "When the last pass over the source began.",
            now.source_looked_at or 0.0,
        )
