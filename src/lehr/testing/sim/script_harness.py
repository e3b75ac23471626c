"""What scripts are played on: a source, production, people, and control planes that come and go."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace

from lehr.base.diagnostics import errors
from lehr.base.errors import LehrError
from lehr.checks import TYPES
from lehr.control.messages import AnyRequest
from lehr.model.attempt import Attempt, Publication
from lehr.model.decision import Status
from lehr.model.incarnation import Incarnation
from lehr.model.types import AssetType
from lehr.model.writes import Publish, Write, WriteReleases
from lehr.query.partition_view import Reading
from lehr.rollouts.story import in_words
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import Fencing
from lehr.store.sqlite import SqliteStore
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.harness import Harness
from lehr.testing.sim.process import Process
from lehr.testing.sim.production import TRAITS
from lehr.testing.sim.script_assets import Entry
from lehr.testing.sim.simulated_type import SimulatedType
from lehr.testing.sim.source import files
from lehr.testing.sim.strategist import Strategist
from lehr.testing.sim.things import THINGS
from lehr.testing.sim.trace import clock
from lehr.testing.virtual import EPOCH
from lehr.testing.world import PARTITION, Crash, registry

_SHOWN = ("source", "push", "decision", "rollout", "fault", "recovery", "process")
"""Kinds of events that a script shows. The actions of people and editors are in the script itself."""

_IDENTIFIER = re.compile(r"\b\d[0-9a-z]{14,23}\b")
_EVIDENT = (
    (re.compile(r" is Converged AsIntended: .*"), " is Converged"),
    (re.compile(r".* is Pushing Pushing: .*"), ""),  # production reports when the push begins
    (re.compile(r"control plane 1 starts"), ""),
)
"""Implied words, and their meaning."""

_TRYING = (Status.PUSHING, Status.RETRYING, Status.UNKNOWN)
"""Statuses of assets that will soon change automatically."""

_WORKSPACE = "lehr.yaml"

_PATIENCE = 60.0
"""Seconds in which a control plane answers."""


class WorldSettings(msgspec.Struct, frozen=True):
    """The setting of a script.

    Attributes:
        start: wall-clock seconds at its beginning.
        fencing, pushes, resync: of the plugin, as in `lehr.sdk.plugin.Traits`.
        seed: of what is left to chance: jitter, identifiers, the order of what happens at once.
    """

    start: float = EPOCH
    fencing: Fencing = Fencing.NATIVE
    resync: float = 3600.0
    pushes: int = 8
    seed: int = 1


class ExtraTypes(msgspec.Struct, frozen=True):
    """What a script may manage: production of asset types other than `test.Thing`, next to it.

    Attributes:
        types: whose assets commits may declare.
        kinds: how production of those types behaves.
        checks: makes further checks.
    """

    types: tuple[AssetType, ...] = ()
    kinds: tuple[SimulatedType, ...] = ()
    checks: Callable[[], Sequence[CheckPlugin]] = tuple


class ScriptHarness(Harness):
    """One script's world.

    Attributes:
        contents: the files of the source.
        held: control planes that are stopped now.
        crashing: when ("before", "after") and at which write the next one to be started dies.
        turns_shown: turns of a control plane, as `turns` showed them last.
        failures: expectations that did not come true, and rules that were broken.
    """

    title = "control plane"

    def __init__(self, folder: Path, settings: WorldSettings, extra: ExtraTypes) -> None:
        """A world that keeps its state in `folder`, which is empty."""
        traits = replace(TRAITS, fencing=settings.fencing, pushes=settings.pushes, resync=settings.resync)
        known = registry((*TYPES, *extra.types))
        super().__init__(folder, PARTITION, known, traits, (THINGS, *extra.kinds), Dice(settings.seed))
        self.settings = settings
        self.witness.capacity = None
        self.production.steady = True
        self.contents: dict[str, bytes] = {}
        self.failures: list[str] = []
        self.held: list[Process] = []
        self.crashing: tuple[str, type] | None = None
        self.refused = False
        self.turns_shown: tuple[Process | None, int] = None, 0
        self.strategist = Strategist(self)
        self._extra = extra
        self._let_go: dict[str, str] = {}
        self._shown = 0
        self._numbers: dict[str, int] = {}
        self._judged = 0

    def checks(self) -> Sequence[CheckPlugin]:
        """As `Harness.checks`, and those of the script's own types."""
        return [*super().checks(), *self._extra.checks()]

    def committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        """As `Harness.committed`, and trace each publication and what rollouts do."""
        super().committed(writes, answers)
        for write, answer in zip(writes, answers, strict=True):
            if isinstance(write, Publish) and isinstance(answer, Incarnation):
                changed = [asset.id for asset in write.candidate.upserts]
                gone = [f"{id} is gone" for id in write.candidate.removals]
                self.trace.note("source", f"{answer.name} is published: {', '.join([*changed, *gone])}")
            if isinstance(write, WriteReleases) and answer is None:
                for item in write.evidence:
                    if words := in_words(item.fact):
                        self.trace.note("rollout", f"{item.policy} {words}")

    # --- control planes --------------------------------------------------------------

    @property
    def process(self) -> Process:
        """The newest control plane.

        Raises:
            LehrError: none runs.
        """
        if not self.running:
            raise LehrError("no control plane is running", fix="start one with `start`")
        return self.running[-1]

    @property
    def answering(self) -> Process:
        """The newest control plane.

        Raises:
            LehrError: none runs, or it is stopped.
        """
        process = self.process
        if process in self.held:
            raise LehrError(f"{process.name} is stopped, and does not answer", fix="let it run: `release`")
        return process

    async def start(self) -> None:
        """Start a control plane next to the existing ones."""
        process = self.add_process(self.settings.seed * 1000 + len(self.processes) + 1)
        process.plane.listeners.append(self._note_attempt)
        if self.crashing is not None:
            self.crash(process, *self.crashing)
            self.crashing = None
        try:
            await process.start()
        except Crash:
            await self.reap()
        except LehrError as error:
            raise LehrError(f"{process.name} cannot start", why=str(error)) from error

    def _note_attempt(self, attempt: Attempt) -> None:
        refused = attempt.publication in (Publication.REFUSED, Publication.UNREADABLE)
        if refused and not self.refused:
            stays = f"{attempt.partition}@{attempt.sequence}" if attempt.sequence else "nothing"
            self.trace.note("source", f"the source is {attempt.publication}; {stays} stays in force")
            for item in errors(attempt.diagnostics):
                place = f" {item.at}" if item.at is not None else ""
                self.trace.note("source", f"  {item.code}{place}: {item.what}")
        self.refused = refused

    def crash(self, process: Process, when: str, kind: type) -> None:
        """Have a control plane die before or after its next write of this kind."""

        def before(number: int, writes: Sequence[Write]) -> None:
            if any(isinstance(item, kind) for item in writes):
                process.store.dies = when

        process.store.before = before

    async def reap(self) -> None:
        """Clear away the control planes that have died."""
        for process in self.processes:
            if process.dead and not process.gone:
                await process.kill()

    async def command(self, request: AnyRequest, actor: str = "ana") -> list[str]:
        """Give the newest control plane a command; returns its answer."""
        process = self.answering
        try:
            async with asyncio.timeout(_PATIENCE):
                answer = await process.command(request, actor)
        except TimeoutError:
            return ["no answer"]
        except Crash:
            await self.reap()
            return ["the control plane died of it"]
        if answer.ok:
            return [answer.message]
        why = f": {answer.why}" if answer.why else ""
        return [f"refused: {answer.message}{why}"]

    # --- time ------------------------------------------------------------------------

    async def pass_time(self, seconds: float) -> None:
        """Let time pass; control planes that die are cleared away immediately."""
        until = self.clock.monotonic() + seconds
        passed = asyncio.ensure_future(self.clock.sleep(seconds))
        try:
            while self.clock.monotonic() < until:
                deaths = [asyncio.ensure_future(process.store.died.wait()) for process in self.running]
                try:
                    await asyncio.wait([passed, *deaths], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for death in deaths:
                        death.cancel()
                await self.reap()
        finally:
            passed.cancel()

    async def come_to_rest(self, seconds: float) -> bool:
        """Let time pass until nothing is left to do, or what is left waits: for its time, a person,
        new intent.

        Returns:
            False if that was not so after `seconds`.
        """
        process = self.answering
        try:
            async with asyncio.timeout(seconds):
                await process.run(self._rested(process))
        except TimeoutError:
            return False
        except Crash:
            await self.reap()
        return True

    async def _rested(self, process: Process) -> None:
        while True:
            await process.plane.converge()
            decisions = self.witness.decisions
            left = [decisions[id] for id in process.enforcer.unsettled if id in decisions]
            if not any(decision.condition.status in _TRYING for decision in left):
                return
            await process.enforcer.changed()

    def sequence(self, at: str) -> int:
        """The incarnation that a script names."""
        newest = max(self.witness.incarnations, default=0)
        named = {"latest": newest, "previous": newest - 1}.get(at)
        return int(at) if named is None else named

    # --- intent ----------------------------------------------------------------------

    def write(self, entries: Sequence[Entry]) -> None:
        """Write the entries of a commit into the files."""
        for entry in entries:
            path = f"assets/{entry.id}.yaml"
            if entry.gone:
                self.contents.pop(path, None)
            else:
                self.contents[path] = entry.text()
            if entry.let_go:
                self._let_go[entry.id] = "no concern of ours"
            else:
                self._let_go.pop(entry.id, None)
        document: dict[str, Any] = {"partition": PARTITION}
        if self._let_go:
            document["let_go"] = dict(sorted(self._let_go.items()))
        self.contents[_WORKSPACE] = yaml.safe_dump(document, sort_keys=False).encode()

    async def edit(self, contents: Mapping[str, bytes], what: str) -> None:
        """Make `contents` the newest revision of the source, and let a control plane look at it."""
        snapshot = files(contents)
        self.witness.publications.let_go |= self._let_go.keys()
        if snapshot.revision.revision not in self.witness.publications.revisions:
            self.witness.publications.revisions[snapshot.revision.revision] = await self.declared(snapshot)
        self.repository.edit(contents, what)
        if not self.processes:
            await self.start()
            return
        for process in self.running[-1:]:
            if process not in self.held:
                await self._refresh(process)

    async def _refresh(self, process: Process) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await process.run(process.plane.refresh())
        except Crash:
            await self.reap()
        except (LehrError, TimeoutError) as error:
            self.trace.note("source", f"nothing is published: {str(error) or 'no answer'}")

    # --- what there is to see ------------------------------------------------------------

    def happened(self) -> Iterator[str]:
        """Events since the last call, and rules that they broke."""
        events = self.trace.events[self._shown :]
        self._shown = len(self.trace.events)
        for event in events:
            if event.kind in _SHOWN and (text := self.named(event.text)):
                yield f"{clock(event.at)}  {text}"
        broken = list(dict.fromkeys([*self.witness.violations, *self.production.broken]))
        for line in broken[self._judged :]:
            self.failures.append(f"broken: {line}")
            yield f"BROKEN  {line}"
        self._judged = len(broken)

    def named(self, text: str) -> str:
        """`text` without the implied words; identifiers, which chance makes, are numbered."""
        text = text.replace(f"{self.folder}/", "")
        for expression, instead in _EVIDENT:
            text = expression.sub(instead, text)

        def number(found: re.Match[str]) -> str:
            return f"#{self._numbers.setdefault(found[0], len(self._numbers) + 1)}"

        return _IDENTIFIER.sub(number, text)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reading]:
        """The state file, as commands that only look read it."""
        store = SqliteStore(self.folder / "state.sqlite", read_only=True)
        with contextlib.closing(store):
            yield Reading(store, PARTITION, self.clock.now(), lambda type: self.registry.types[type].governs)
