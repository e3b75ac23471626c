"""Random histories: one of them, its result as a value, and many over all processors."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from lehr.base.digest import Digest
from lehr.base.garbage import collect_rarely
from lehr.testing.sim import encounters, final_phase, people, sequel, trouble
from lehr.testing.sim.failovers import Failovers
from lehr.testing.sim.random_harness import RandomHarness
from lehr.testing.sim.random_policies import SHARE, RandomPolicies
from lehr.testing.sim.random_releases import RandomReleases
from lehr.testing.sim.verdict import judge, whole
from lehr.testing.virtual import run

S = TypeVar("S")
T = TypeVar("T")

LEAST_EVENTS = 200
"""A history continues until so much has happened; its quiet phase adds to that."""

_LONGEST = 100_000.0
"""Seconds after which a history must be over."""

_QUIET = 0.1
"""How likely nothing happens for a while after a step."""

_CHUNK = 4
_ROUND = 64
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of one's own is made in it


class History(RandomHarness):
    """Plays one random history: intent, production, people and machines misbehave, and then leave it be.

    In the first phase anything may happen, and every write and push is judged as it comes (safety); now
    and then nothing happens for a while, and whatever is then held must still be held by something. In
    the second phase, faults stay only where they can harm nothing else, and everything else must
    settle within a bounded time (liveness). Some histories have a sequel (`lehr.testing.sim.sequel`).

    Attributes:
        policy_share: how likely it has rollout policies.
    """

    policy_share = SHARE

    @property
    def violations(self) -> list[str]:
        """Rules that were broken, one line each, with the rule's id."""
        return [*self.witness.violations, *self.production.broken]

    def play(self) -> None:
        """Play it to its end, and judge the final state."""
        run(self._main, seed=self.seed)

    async def _main(self) -> None:
        async with asyncio.timeout(_LONGEST):
            await self.open()
            dice, taken = self.dice, 0
            failovers, releases, policies = (
                Failovers(self),
                RandomReleases(self),
                RandomPolicies(self, self.policy_share),
            )
            steps = [*people.steps(), *trouble.steps(self), *encounters.steps(self)]
            while taken < self.profile.steps or len(self.trace.events) < LEAST_EVENTS:
                taken += 1
                await self.alive(dice.pick(steps))
                await failovers.happen(self)
                await (policies if policies.active else releases).happen(self)
                await self.alive(
                    lambda harness: harness.process.pass_time(dice.pick((0.0, 0.1, 1.0, 5.0, 30.0)))
                )
                if dice.happens(_QUIET):
                    await self.alive(RandomHarness.quiet_period)
            await policies.end(self)
            await releases.end(self)
            await final_phase.pass_by(self)
            self.witness.violations += [*judge(self), *whole(self)]
            if await sequel.play(self):
                self.witness.violations += whole(self)
            await self.close()


class PolicyHistory(History):
    """A random history with rollout policies."""

    policy_share = 1.0


def kind_of(*, policies: bool) -> type[History]:
    """Histories that all have rollout policies, or those of which few do."""
    return PolicyHistory if policies else History


class Played(msgspec.Struct, frozen=True):
    """Result of a history.

    Attributes:
        violations: of invariants, one line each; none if all is well.
        events: things that happened; seconds: of virtual time.
        digest: of everything that happened: equal whenever the seed is played again.
        reached: how often each path was taken (`lehr.testing.sim.reached`).
        replayed: its decisions, each of which was decided again from its inputs.
    """

    seed: int
    violations: tuple[str, ...]
    events: int
    seconds: float
    digest: Digest
    reached: dict[str, int]
    replayed: int


def play(seed: int, kind: type[History] = History) -> Played:
    """Play the history of `seed` to its end, and judge it. Whatever goes wrong is in the answer."""
    history = history_of(seed, kind)
    events = history.trace.events
    return Played(
        seed,
        tuple(dict.fromkeys(history.violations)),
        len(events),
        events[-1].at if events else 0.0,
        history.trace.digest(),
        dict(sorted(history.witness.reached.items())),
        history.witness.feed.replayed,
    )


def history_of(seed: int, kind: type[History] = History) -> History:
    """The history of `seed`, played."""
    with scratch() as folder, silence(), rare_collections():
        history = kind(seed, folder)
        try:
            history.play()
        except Exception as error:
            history.witness.violations.append(f"I8: the run broke: {type(error).__name__}: {error}")
        return history


def spread(
    function: Callable[[S], T], items: Sequence[S], jobs: int, over: Callable[[], bool] = lambda: False
) -> Iterator[T]:
    """Call `function` for each item in `jobs` processes, in whatever order they end, until it is `over`."""
    size = jobs * _ROUND if jobs > 1 else 1
    rounds = (items[start : start + size] for start in range(0, len(items), size))
    # Not forked: inherited threads and locks are not reliable.
    pool = multiprocessing.get_context("spawn").Pool(jobs) if jobs > 1 else None
    with pool or contextlib.nullcontext():
        for some in rounds:
            if over():
                return
            yield from map(function, some) if pool is None else pool.imap_unordered(function, some, _CHUNK)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder where commits cost no disk, unless TMPDIR names another place: no machine crashes in here."""
    in_memory = _MEMORY.is_dir() and "TMPDIR" not in os.environ
    with tempfile.TemporaryDirectory(prefix="lehr-sim-", dir=_MEMORY if in_memory else None) as name:
        yield Path(name)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Plugins fail by the thousand in a simulation: logging that is useless and costs time."""
    before, of_plugins = structlog.get_config(), logging.getLogger("lehr.plugin")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    of_plugins.disabled = True
    try:
        yield
    finally:
        of_plugins.disabled = False
        structlog.configure(**before)


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Hardly anything in a history is cyclic garbage: looking for it as often as Python does takes 5 %."""
    before = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def failed(runs: Sequence[Played]) -> list[Played]:
    """Those in which an invariant was broken, by seed."""
    return sorted((run for run in runs if run.violations), key=lambda run: run.seed)
