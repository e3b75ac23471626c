"""One pass from a source to an incarnation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from lehr import __version__
from lehr.base.blocking import Blocking
from lehr.base.diagnostics import Diagnostic, errors, in_order
from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.model.addons import is_turned_down
from lehr.model.asset import Asset, AssetId
from lehr.model.attempt import Attempt, Publication
from lehr.model.damage import DamagedError
from lehr.model.incarnation import AssetChange, Candidate, Incarnation, SourceRevision
from lehr.model.writes import Publish, RecordAttempt, Refused, Write
from lehr.publish import problems
from lehr.publish.claims import claim_anything, claims_of, register_unusable, take, take_up
from lehr.publish.database_answers import consult
from lehr.publish.moved import Moved
from lehr.publish.overtakable_generation import generated_unless_overtaken
from lehr.publish.plugin_answers import ask
from lehr.publish.predecessor import StoredPredecessor, same, types_for
from lehr.publish.problem_positions import Locator, with_excerpts
from lehr.publish.stages import Begun, Compared, Consulted, Ended, Generated, Judged, Read, advance
from lehr.sdk.asked_validator import AskedValidator
from lehr.sdk.claims import Claims
from lehr.sdk.generation import Generated as Output
from lehr.sdk.generation import Generation, OvertakenError
from lehr.sdk.runtime import Runtime
from lehr.sdk.source import (
    REMARK,
    RefusedRevisionError,
    Remarks,
    Snapshot,
    Source,
    SourcesError,
    revisions_of,
)
from lehr.sdk.validator import Limits, LookUp, Validator, is_beyond_source
from lehr.validate import UNANSWERED, DeltaProposal, judge

log = Log()

_MOST_OVERTAKEN = 3
"""How often a pass yields to a newer revision. Bounded, so that a busy source still gets published."""

_UNPUBLISHED = (Publication.REFUSED, Publication.UNREADABLE)
"""Outcomes that always have an error among their diagnostics."""

_LEHR = SourceRevision("lehr", __version__)

Ask = Callable[[Write], Awaitable[object]]


Step = Callable[[Any], Awaitable[Begun | Ended]]
"""Advances a pass by one stage, or ends it."""


class Publisher:
    """Publishes what a source declares, for one partition.

    Only one `refresh` may run at a time.

    Attributes:
        steps: steps of a pass, by name, in order.
    """

    def __init__(
        self,
        runtime: Runtime,
        source: Source,
        generation: Generation,
        clean: Callable[[], Generation],
        ask: Ask,
        blocking: Blocking,
        look_up: LookUp | None = None,
        claims: Claims | None = None,
        validators: Sequence[Validator] = (),
        asked_validators: Sequence[AskedValidator] = (),
    ) -> None:
        """Publish from `source` to the store of `runtime`.

        Args:
            clean: makes a generation without a memory, to confirm removals.
            ask: commits one write and returns the store's answer.
            blocking: runs the blocking steps: reading the source, comparing and judging.
            look_up: queries a database that must judge a change; None where none can be queried.
            claims: the register of the host; None where other partitions cannot exist.
            validators: those of plugins. They may read files.
            asked_validators: those of plugins in other processes.
        """
        self._partition, store = runtime.partition, runtime.store
        self._source = source
        self._generation = generation
        self._clean = clean
        self._store = store
        self._ask = ask
        self._registry = runtime.registry.copy()  # a candidate may declare types that are never published
        self._clock = runtime.clock
        self._blocking = blocking
        self._reading = runtime.reading
        self._look_up = look_up
        self._claims = claims
        self._validators = validators
        self._asked_validators = asked_validators
        self._moved = Moved(claims, runtime.partition, store, self._registry, blocking) if claims else None
        self._unpublished: set[AssetId] | None = None
        self._differs_from = 0
        self.steps: dict[str, Step] = {
            "read": self._read,
            "generate": self._generate,
            "compare": self._compare,
            "consult": self._consult,
            "validate": self._validate,
            "confirm": self._confirm,
            "claim": self._claim,
            "publish": self._publish,
        }

    async def refresh(self) -> Attempt:
        """Run one pass over the newest revision. Problems are returned, not raised.

        Raises:
            TransientError: the store is out of order.
        """
        for left in reversed(range(_MOST_OVERTAKEN + 1)):
            begun = Begun(at=self._clock.now(), may_be_overtaken=left > 0)
            seconds: dict[str, float] = {}
            try:
                ended = await self._pass(begun, seconds)
                break
            except OvertakenError:
                if not left:
                    raise
        if self._moved is not None:
            await self._moved.settle()
        attempt = await self._attempt(begun.at, await self._with_remarks(ended), seconds)
        await self._keep(attempt)
        return attempt

    async def _pass(self, begun: Begun, seconds: dict[str, float]) -> Ended:
        """Run the steps until one ends the pass; record the duration of each in `seconds`."""
        stage = begun
        for name, step in self.steps.items():
            began = self._clock.monotonic()
            try:
                reached = await step(stage)
            except DamagedError as error:
                reached = _end(stage, Publication.UNREADABLE, problems.damaged(error))
            except LehrError:
                raise
            except Exception as error:
                # An error of a source or generator must not end the process, and with it all healing.
                log.exception("a pass over the source failed", step=name)
                reached = _end(stage, Publication.UNREADABLE, problems.broken(name, error))
            seconds[name] = self._clock.monotonic() - began
            if isinstance(reached, Ended):
                return reached
            stage = reached
        raise AssertionError("the last step ends a pass")

    async def _with_remarks(self, ended: Ended) -> Ended:
        """Add the source's own remarks."""
        if not isinstance(self._source, Remarks):
            return ended
        remarks = await self._blocking.run(getattr, self._source, "remarks")
        # Repeat why a revision was refused, with the remarks of that time.
        kept = (item for item in ended.diagnostics if item.code != REMARK)
        return replace(ended, diagnostics=(*kept, *remarks))

    async def _keep(self, attempt: Attempt) -> None:
        before = await self._reading.run(self._store.records.attempt, self._partition)
        same = (
            before is not None
            and replace(before, at=attempt.at, seconds=attempt.seconds, changed=attempt.changed) == attempt
        )
        if not same:
            await self._ask(RecordAttempt(replace(attempt, changed=())))

    async def _attempt(self, at: float, ended: Ended, seconds: dict[str, float]) -> Attempt:
        # Reads may not see the latest write yet.
        sequence = ended.incarnation.sequence if ended.incarnation else await self._newest()
        diagnostics = ended.diagnostics
        if ended.generated_from is not None:
            diagnostics = with_excerpts(diagnostics, ended.generated_from)
        return Attempt(
            partition=self._partition,
            at=at,
            publication=ended.publication,
            sources=ended.sources,
            sequence=sequence,
            changed=tuple(change.id for change in ended.changes),
            diagnostics=tuple(in_order(diagnostics)),
            seconds=seconds,
        )

    # --- the steps -----------------------------------------------------------------

    async def _read(self, begun: Begun) -> Read | Ended:
        """Read the newest revision; end here if it was already processed."""
        try:
            snapshot = await self._blocking.run(self._source.newest)
        except RefusedRevisionError as error:
            refused = _end(begun, Publication.REFUSED, problems.not_taken(error))
            return replace(refused, sources=(error.revision, _LEHR))
        except SourcesError as error:
            publication = Publication.REFUSED if error.refused else Publication.UNREADABLE
            ended = _end(begun, publication, *with_excerpts(error.diagnostics, error.declaring))
            return replace(ended, sources=(*error.refused, _LEHR) if error.refused else ())
        except LehrError as error:
            return _end(begun, Publication.UNREADABLE, problems.not_read(self._source.name, error))
        read = advance(begun, Read, snapshot=snapshot)
        last = await self._reading.run(self._store.records.attempt, self._partition)
        if last is None or last.sources != _sources(snapshot) or last.sequence != await self._newest():
            return read  # an incarnation's origin may not be recorded; the source may have moved back
        if any(is_beyond_source(item.code) for item in errors(last.diagnostics)):
            return read  # a claim may have been released, a path moved, a value added to a database
        if last.publication is Publication.REFUSED:
            return _end(read, Publication.REFUSED, *last.diagnostics)
        if last.publication is not Publication.UNREADABLE:
            return _end(read, Publication.UNCHANGED)
        return read

    async def _newest(self) -> int:
        """Sequence of the newest incarnation; 0 if there is none."""
        newest = await self._reading.run(self._store.intent.newest, self._partition)
        return 0 if newest is None else newest.sequence

    async def _generate(self, read: Read) -> Generated | Ended:
        try:
            output = await self._generated(read.snapshot, read.may_be_overtaken)
        except OvertakenError:
            raise
        except LehrError as error:
            return _end(read, Publication.UNREADABLE, problems.not_generated(error))
        self._touch(output.touched)
        diagnostics = output.diagnostics
        if output.partition not in (None, self._partition):
            diagnostics += (problems.other_partition(self._partition, str(output.partition)),)
        generated = advance(read, Generated, output=output, diagnostics=diagnostics)
        if errors(diagnostics):
            return _end(generated, Publication.REFUSED, *diagnostics)
        types = await self._reading.run(types_for, output, self._store.intent, self._partition)
        self._registry.declare(types)
        return generated

    async def _generated(self, snapshot: Snapshot, may_be_overtaken: bool) -> Output:
        if not may_be_overtaken:
            return await self._generation.generate(snapshot)
        return await generated_unless_overtaken(
            self._generation, snapshot, self._source, self._clock, self._blocking
        )

    def _touch(self, touched: frozenset[AssetId] | None) -> None:
        """Remember what may differ from the incarnation `_differs_from`, across refused passes."""
        if touched is None or self._unpublished is None:
            self._unpublished = None
        else:
            self._unpublished |= touched

    def _in_step_with(self, sequence: int) -> None:
        """The newest output is what incarnation `sequence` holds."""
        self._unpublished, self._differs_from = set(), sequence

    async def _compare(self, generated: Generated) -> Compared:
        """Find how the candidate differs from the newest incarnation, in O(touched)."""
        # In a thread, like judging: a million assets take many seconds, which must not block others.
        return await self._blocking.run(self._difference, generated)

    def _difference(self, generated: Generated) -> Compared:
        predecessor = StoredPredecessor(self._store, self._registry, self._partition)
        changes = tuple(self._changes(predecessor, generated.output))
        candidate = Candidate(
            self._partition,
            predecessor.sequence,
            _sources(generated.snapshot),
            generated.output.generators,
            tuple(change.after for change in changes if change.after is not None),
            tuple(change.id for change in changes if change.after is None),
            _types(predecessor, changes),
        )
        return advance(generated, Compared, candidate=candidate, changes=changes)

    def _changes(self, predecessor: StoredPredecessor, output: Output) -> list[AssetChange]:
        # After a publication by another process, anything may differ. Reads may also lag behind our own.
        ids = self._unpublished if predecessor.sequence <= self._differs_from else None
        return predecessor.changes(output.assets, ids)

    async def _consult(self, compared: Compared) -> Consulted | Ended:
        changes = compared.changes
        answers = await consult(compared.output.limits or Limits(), changes, self._look_up)
        consulted = advance(compared, Consulted, answers=answers)
        propose = partial(self._proposal, consulted)
        answered = await ask(self._asked_validators, changes, propose, self._blocking)
        consulted = replace(consulted, answered=answered)
        if self._claims is None or not await self._blocking.run(claim_anything, changes, self._registry):
            return consulted
        assert self._moved is not None
        try:
            await take_up(self._claims, self._partition, self._store, self._registry, self._blocking)
            claimed = await self._blocking.run(claims_of, changes, self._registry)
            conflicts = await self._moved.conflicts(claimed)
        except LehrError as error:
            return _end(consulted, Publication.UNREADABLE, register_unusable(error))
        return replace(consulted, claimed=claimed, conflicts=conflicts)

    async def _validate(self, consulted: Consulted) -> Judged | Ended:
        return await self._blocking.run(self._judge, consulted)

    def _proposal(self, consulted: Consulted) -> DeltaProposal:
        return DeltaProposal(
            self._partition,
            self._registry,
            consulted.output.limits or Limits(),
            consulted.changes,
            StoredPredecessor(self._store, self._registry, self._partition),
            Locator(consulted.snapshot),
            consulted.answers,
            consulted.conflicts,
            consulted.answered,
        )

    def _judge(self, consulted: Consulted) -> Judged | Ended:
        proposal = self._proposal(consulted)
        judgement = judge(proposal, self._validators)
        diagnostics = (*consulted.diagnostics, *judgement.diagnostics)
        if errors(diagnostics):
            ended = _end(consulted, Publication.REFUSED, *diagnostics)
            if any(item.code in UNANSWERED for item in errors(diagnostics)):
                # Retried: the database or the plugin may come back.
                ended = replace(ended, publication=Publication.UNREADABLE)
            return ended
        candidate = replace(consulted.candidate, acknowledged=judgement.acknowledged)
        consulted = replace(consulted, candidate=candidate, diagnostics=diagnostics)
        return advance(consulted, Judged, proposal=proposal)

    async def _confirm(self, judged: Judged) -> Judged | Ended:
        """Confirm every new turndown with a clean build. Invariants: I4, I11."""
        if not await self._blocking.run(_ask_for_turndown, judged.changes):
            return judged
        generation = self._clean()
        try:
            clean = await generation.generate(judged.snapshot)
        except LehrError as error:
            return _end(judged, Publication.UNREADABLE, problems.not_generated(error))
        finally:
            await generation.close()
        differing = _differing(judged.output.assets, clean.assets)
        if differing or errors(clean.diagnostics):
            problem = problems.not_confirmed(differing)
            return _end(judged, Publication.REFUSED, *judged.diagnostics, problem)
        return judged

    async def _claim(self, judged: Judged) -> Judged | Ended:
        """Keep other partitions from publishing the same claims, from now on."""
        if self._claims is None or not judged.claimed:
            return judged
        problem = await take(self._claims, self._partition, judged.claimed)
        return judged if problem is None else _end(judged, Publication.UNREADABLE, problem)

    async def _publish(self, judged: Judged) -> Ended:
        """Publish the candidate as the newest incarnation."""
        candidate = judged.candidate
        if candidate.changes_nothing and candidate.base:
            self._in_step_with(candidate.base)
            return _end(judged, Publication.UNCHANGED, *judged.diagnostics)
        try:
            await self._blocking.run(self._source.keep, judged.snapshot.revision)
        except LehrError as error:
            return _end(judged, Publication.UNREADABLE, problems.not_read(self._source.name, error))
        write = Publish(
            candidate,
            judged.proposal.mentions,
            tuple(name for name, item in self._registry.types.items() if item.governs),
            self._clock.now(),  # a turndown counts from here, not from the start of the pass
            judged.proposal.claims,
        )
        answer = await self._ask(write)
        if isinstance(answer, Refused):
            return _end(judged, Publication.UNREADABLE, problems.overtaken(answer))
        assert isinstance(answer, Incarnation)
        if self._moved is not None:
            self._moved.note(judged.changes)
        self._in_step_with(answer.sequence)
        return replace(_end(judged, Publication.PUBLISHED, *judged.diagnostics), incarnation=answer)


def _end(stage: Begun, publication: Publication, *diagnostics: Diagnostic) -> Ended:
    """End a pass that has reached `stage`."""
    if publication in _UNPUBLISHED and not errors(diagnostics):
        diagnostics = (*diagnostics, problems.without_reason())
    refused = publication is Publication.REFUSED
    return Ended(
        publication=publication,
        diagnostics=diagnostics,
        sources=_sources(stage.snapshot) if isinstance(stage, Read) else (),
        changes=stage.changes if isinstance(stage, Compared) and not refused else (),
        generated_from=stage.snapshot if isinstance(stage, Generated) else None,
    )


def _sources(snapshot: Snapshot) -> tuple[SourceRevision, ...]:
    """The generating program is an input: another version may make other assets."""
    return (*revisions_of(snapshot), _LEHR)


def _types(predecessor: StoredPredecessor, changes: Iterable[AssetChange]) -> dict[str, int]:
    """Number of assets of each type once `changes` are made."""
    sizes = Counter(predecessor.sizes())
    sizes.update(change.after.type for change in changes if change.after is not None)
    sizes.subtract(change.before.type for change in changes if change.before is not None)
    return {type: count for type, count in sorted(sizes.items()) if count}


def _ask_for_turndown(changes: Iterable[AssetChange]) -> bool:
    """Whether any of `changes` starts a turndown."""
    return any(is_turned_down(change.after) and not is_turned_down(change.before) for change in changes)


def _differing(one: Mapping[AssetId, Asset], other: Mapping[AssetId, Asset]) -> list[AssetId]:
    return sorted(id for id in one.keys() | other.keys() if not same(one.get(id), other.get(id)))
