"""What scripts are played on: a source, production, people, and control planes that come and go."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from lehr.base.diagnostics import errors
from lehr.base.errors import LehrError
from lehr.checks import CHECKS, TYPES
from lehr.control.messages import AnyRequest
from lehr.model.asset import Asset
from lehr.model.attempt import Attempt, Publication
from lehr.model.decision import Status
from lehr.model.diff import Goal
from lehr.model.incarnation import Incarnation
from lehr.model.types import AssetType, Registry
from lehr.model.writes import Publish, Write
from lehr.query.partition_view import Reading
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import Fencing, Traits
from lehr.store.sqlite import SqliteStore
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.generation import InlineGeneration
from lehr.testing.sim.process import Process, Site, running
from lehr.testing.sim.production import LOOK_TIMEOUT, PUSH_TIMEOUT, Kind, Production
from lehr.testing.sim.script_assets import Entry
from lehr.testing.sim.source import Files, Repository, files
from lehr.testing.sim.store import damage
from lehr.testing.sim.things import THINGS
from lehr.testing.sim.trace import Trace, clock
from lehr.testing.sim.witness import Witness
from lehr.testing.virtual import EPOCH, VirtualClock
from lehr.testing.world import PARTITION, Crash, registry

_TOLD = ("source", "push", "decision", "fault", "recovery", "process")
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


class Setting(msgspec.Struct, frozen=True):
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


class Cast(msgspec.Struct, frozen=True):
    """What a script may manage: production of asset types other than `test.Thing`, next to it.

    Attributes:
        types: whose assets commits may declare.
        kinds: how production of those types behaves.
        checks: makes further checks.
    """

    types: tuple[AssetType, ...] = ()
    kinds: tuple[Kind, ...] = ()
    checks: Callable[[], Sequence[CheckPlugin]] = tuple


class Stage:
    """One script's world.

    Attributes:
        contents: the files of the source.
        processes: all control planes there were; the last one is the one that commands go to.
        held: those that are stopped now.
        crashing: when ("before", "after") and at which write the next one to be started dies.
        lost: ids that need not converge, as the verdict asks; none.
        failures: expectations that did not come true, and rules that were broken.
    """

    def __init__(self, folder: Path, setting: Setting, cast: Cast) -> None:
        """For use in a running virtual loop, with an empty `folder` for the state."""
        known = registry((*TYPES, *cast.types))
        self.setting = setting
        self.clock = VirtualClock()
        self.trace = Trace()
        self.witness = Witness(known, self.trace)
        self.witness.fenced = setting.fencing is Fencing.NATIVE
        self.witness.capacity = None
        kinds = (THINGS, *cast.kinds)
        self.production = Production(kinds, Dice(setting.seed), self.trace, setting.fencing)
        self.production.steady = True
        self.production.begins = self.witness.begins
        self.repository = Repository(self.trace)
        self.contents: dict[str, bytes] = {}
        self.processes: list[Process] = []
        self.failures: list[str] = []
        self.held: list[Process] = []
        self.crashing: tuple[str, str] | None = None
        self.lost: frozenset[str] = frozenset()
        self.refused = False
        self._let_go: dict[str, str] = {}
        self._told = 0
        self._numbers: dict[str, int] = {}
        self._judged = 0
        self._reaped: set[str] = set()
        self.site = self._site(folder, known, cast)

    def _site(self, folder: Path, known: Registry, cast: Cast) -> Site:
        setting = self.setting
        traits = Traits(
            fencing=setting.fencing,
            goals=frozenset({Goal.FENCED, Goal.ABSENT}),
            pushes=setting.pushes,
            diff_timeout=LOOK_TIMEOUT,
            push_timeout=PUSH_TIMEOUT,
            resync=setting.resync,
        )
        return Site(
            folder,
            PARTITION,
            known,
            lambda: [*(check() for check in CHECKS), *cast.checks()],
            traits,
            self.production,
            self.repository,
            self.clock,
            self.trace,
            self._committed,
            poll=60.0,
        )

    def _committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        self.witness.committed(writes, answers)
        for write, answer in zip(writes, answers, strict=True):
            if isinstance(write, Publish) and isinstance(answer, Incarnation):
                changed = [asset.id for asset in write.candidate.upserts]
                gone = [f"{id} is gone" for id in write.candidate.removals]
                self.trace.note("source", f"{answer.name} is published: {', '.join([*changed, *gone])}")

    # --- control planes --------------------------------------------------------------

    @property
    def process(self) -> Process:
        """The newest control plane.

        Raises:
            LehrError: none runs.
        """
        alive = running(self.processes)
        if not alive:
            raise LehrError("no control plane is running", fix="start one with `start`")
        return alive[-1]

    @property
    def answering(self) -> Process:
        """The newest control plane.

        Raises:
            LehrError: none runs, or it is stopped.
        """
        process = self.process
        if process in self.held:
            raise LehrError(f"{process.name} is stopped, and does not answer", fix="let it go on: `release`")
        return process

    @property
    def aside(self) -> list[Process]:
        """Control planes in whose place another one has come."""
        return self.processes[:-1]

    async def start(self) -> None:
        """Start a control plane next to the existing ones."""
        number = len(self.processes) + 1
        process = Process(self.site, f"control plane {number}", self.setting.seed * 1000 + number)
        process.plane.listeners.append(self._heard)
        self.processes.append(process)
        if self.crashing is not None:
            self.crash(process, *self.crashing)
            self.crashing = None
        try:
            await process.start()
        except Crash:
            await self.reap()
        except LehrError as error:
            self._reaped.add(process.name)
            raise LehrError(f"{process.name} cannot start", why=str(error)) from error

    def _heard(self, attempt: Attempt) -> None:
        refused = attempt.publication in (Publication.REFUSED, Publication.UNREADABLE)
        if refused and not self.refused:
            stays = f"{attempt.partition}@{attempt.sequence}" if attempt.sequence else "nothing"
            self.trace.note("source", f"the source is {attempt.publication}; {stays} stays in force")
            for item in errors(attempt.diagnostics):
                place = f" {item.at}" if item.at is not None else ""
                self.trace.note("source", f"  {item.code}{place}: {item.what}")
        self.refused = refused

    def crash(self, process: Process, when: str, write: str) -> None:
        """Have a control plane die before or after its next write of this kind."""
        trouble = process.store

        def before(number: int, writes: Sequence[Write]) -> None:
            kinds = {type(item).__name__.lower() for item in writes}
            if write == "commit" or write in kinds:
                trouble.dies = when

        trouble.before = before

    def damage(self, id: str) -> None:
        """Change the state file's record of an asset."""
        damage(self.site.folder / "state.sqlite", id)

    async def reap(self) -> None:
        """Clear away the control planes that have died."""
        for process in self.processes:
            if process.dead and process.name not in self._reaped:
                self._reaped.add(process.name)
                await process.kill()

    async def kill(self, process: Process) -> None:
        """End a control plane immediately."""
        self._reaped.add(process.name)
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
                alive = running(self.processes)
                deaths = [asyncio.ensure_future(process.store.died.wait()) for process in alive]
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
        self.witness.let_go |= self._let_go.keys()
        if snapshot.revision.revision not in self.witness.revisions:
            self.witness.revisions[snapshot.revision.revision] = await self._declared(snapshot)
        self.repository.edit(contents, what)
        if not self.processes:
            await self.start()
            return
        for process in running(self.processes)[-1:]:
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

    async def _declared(self, snapshot: Files) -> dict[str, str] | None:
        """A revision's declarations, from a clean build; None if it is not whole."""
        generated = await InlineGeneration(self.site.registry, self.clock).generate(snapshot)
        if errors(generated.diagnostics) or not generated.assets:
            return None
        return {str(asset.id): str(asset.digest) for asset in generated.assets.values()}

    # --- what there is to see ------------------------------------------------------------

    def happened(self) -> Iterator[str]:
        """What has happened since this was asked last, and rules that were broken by it."""
        events = self.trace.events[self._told :]
        self._told = len(self.trace.events)
        for event in events:
            if event.kind in _TOLD and (text := self.named(event.text)):
                yield f"{clock(event.at)}  {text}"
        broken = list(dict.fromkeys([*self.witness.violations, *self.production.broken]))
        for line in broken[self._judged :]:
            self.failures.append(f"broken: {line}")
            yield f"BROKEN  {line}"
        self._judged = len(broken)

    def named(self, text: str) -> str:
        """`text` without what goes without saying; identifiers, which chance makes, are numbered."""
        text = text.replace(f"{self.site.folder}/", "")
        for expression, instead in _EVIDENT:
            text = expression.sub(instead, text)

        def number(found: re.Match[str]) -> str:
            return f"#{self._numbers.setdefault(found[0], len(self._numbers) + 1)}"

        return _IDENTIFIER.sub(number, text)

    def reading(self) -> Reading:
        """The state file, as commands that only look read it. The caller closes its store."""
        store = SqliteStore(self.site.folder / "state.sqlite", read_only=True)
        return Reading(store, PARTITION, self.clock.now(), self._governs)

    def _governs(self, type: str) -> bool:
        return self.site.registry.types[type].governs

    def managed(self) -> list[Asset]:
        """Assets of the newest incarnation that have production."""
        found = self.witness.assets().values()
        return [asset for asset in found if not self._governs(asset.type)]

    async def close(self) -> None:
        """End every control plane."""
        for process in self.processes:
            if process.name not in self._reaped:
                await self.kill(process)
