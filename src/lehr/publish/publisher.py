"""One pass from a source to an incarnation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec
import structlog
from msgspec.structs import replace

from lehr import __version__
from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.diagnostics import Diagnostic, errors, in_order
from lehr.base.digest import short
from lehr.base.errors import LehrError
from lehr.base.text import described
from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.attempt import Attempt, Publication
from lehr.model.damage import DamagedError
from lehr.model.incarnation import AssetChange, Candidate, Incarnation, SourceRevision
from lehr.model.types import Registry, addon_names
from lehr.model.writes import Publish, RecordAttempt, Refused, Write
from lehr.publish.claims import Claimed, claim_anything, claims_of, register_unusable, take, take_up
from lehr.publish.database_answers import consult
from lehr.publish.declaring import types_for
from lehr.publish.moved import Moved
from lehr.publish.overtakable_generation import generated_unless_overtaken
from lehr.publish.predecessor import StoredPredecessor
from lehr.publish.problem_positions import Locator, with_excerpts
from lehr.sdk.claims import Claims, Conflict
from lehr.sdk.generation import Generated, Generation, OvertakenError
from lehr.sdk.source import (
    REMARK,
    RefusedRevisionError,
    Remarks,
    Snapshot,
    Source,
    SourcesError,
    revisions_of,
)
from lehr.sdk.store import Store
from lehr.sdk.validator import BEYOND_SOURCE, Answers, Limits, LookUp
from lehr.validate import NOT_ASKED, DeltaProposal, judge

log = structlog.get_logger()

_MOST_OVERTAKEN = 3
"""Times that a pass makes way for a newer revision, so that one that is never the last is published, too."""

_UNPUBLISHED = (Publication.REFUSED, Publication.UNREADABLE)
"""What an attempt never comes to without an error among its diagnostics."""

_LEHR = SourceRevision("lehr", __version__)

Ask = Callable[[Write], Awaitable[object]]


class _Pass(msgspec.Struct):
    """What a pass has come to so far."""

    at: float
    may_be_overtaken: bool = False
    snapshot: Snapshot | None = None
    refused: tuple[SourceRevision, ...] = ()
    generated: Generated | None = None
    candidate: Candidate | None = None
    changes: tuple[AssetChange, ...] = ()
    answers: Answers = {}
    claimed: Claimed = {}
    conflicts: Sequence[Conflict] = ()
    proposal: DeltaProposal | None = None
    incarnation: Incarnation | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    publication: Publication | None = None
    seconds: dict[str, float] = {}


class Publisher:
    """Publishes what a source declares, for one partition.

    `refresh` may not run twice at a time.
    """

    STEPS = ("read", "generate", "compare", "consult", "validate", "confirm", "claim", "publish")
    """The steps of a pass, by the names of their methods. A step may end the pass."""

    def __init__(
        self,
        partition: Partition,
        source: Source,
        generation: Generation,
        clean: Callable[[], Generation],
        store: Store,
        ask: Ask,
        registry: Registry,
        clock: Clock,
        blocking: Blocking,
        look_up: LookUp | None = None,
        claims: Claims | None = None,
    ) -> None:
        """Publish from `source` to `store`.

        Args:
            clean: makes a generation that remembers nothing, to confirm what would remove.
            ask: commits one write and returns the store's answer.
            blocking: runs what looks at the source, compares and judges.
            look_up: asks a database that is to judge a change; None where none can be asked.
            claims: the register of the host; None where no other partition can be.
        """
        self._partition = partition
        self._source = source
        self._generation = generation
        self._clean = clean
        self._store = store
        self._ask = ask
        self._registry = registry.copy()  # a candidate may declare types that are never published
        self._clock = clock
        self._blocking = blocking
        self._look_up = look_up
        self._claims = claims
        self._moved = Moved(claims, partition, store, self._registry, blocking) if claims else None
        self._unpublished: set[AssetId] | None = None

    async def refresh(self) -> Attempt:
        """Take one pass over the newest revision. Problems are in the answer, not raised.

        Raises:
            TransientError: the store is out of order.
        """
        for left in reversed(range(_MOST_OVERTAKEN + 1)):
            try:
                work = await self._pass(may_be_overtaken=left > 0)
                break
            except OvertakenError:
                if not left:
                    raise
        if self._moved is not None:
            await self._moved.settle()
        await self._remark(work)
        attempt = self._attempt(work)
        await self._keep(attempt)
        return attempt

    async def _pass(self, *, may_be_overtaken: bool) -> _Pass:
        work = _Pass(self._clock.now(), may_be_overtaken, seconds={})
        for name in self.STEPS:
            began = self._clock.monotonic()
            try:
                await getattr(self, f"_{name}")(work)
            except DamagedError as error:
                self._end(work, Publication.UNREADABLE, _damaged(error))
            except LehrError:
                raise
            except Exception as error:
                # What a source or generator says must not end the process, and with it all healing.
                log.exception("a pass over the source broke", step=name)
                self._end(work, Publication.UNREADABLE, _broken(name, error))
            work.seconds[name] = self._clock.monotonic() - began
            if work.publication is not None:
                break
        return work

    async def _remark(self, work: _Pass) -> None:
        """Add what the source has to say besides."""
        if isinstance(self._source, Remarks):
            remarks = await self._blocking.run(getattr, self._source, "remarks")
            # What a revision was refused for is told again, with what was remarked at that time.
            kept = (item for item in work.diagnostics if item.code != REMARK)
            work.diagnostics = (*kept, *remarks)

    async def _keep(self, attempt: Attempt) -> None:
        before = self._store.records.attempt(self._partition)
        same = (
            before is not None
            and replace(before, at=attempt.at, seconds=attempt.seconds, changed=attempt.changed) == attempt
        )
        if not same:
            await self._ask(RecordAttempt(replace(attempt, changed=())))

    def _attempt(self, work: _Pass) -> Attempt:
        assert work.publication is not None
        if work.snapshot is not None and work.generated is not None:
            work.diagnostics = with_excerpts(work.diagnostics, work.snapshot)
        # Reads may not find yet what was just written.
        newest = work.incarnation or self._store.intent.newest(self._partition)
        return Attempt(
            partition=self._partition,
            at=work.at,
            publication=work.publication,
            sources=work.refused if work.snapshot is None else _sources(work.snapshot),
            sequence=0 if newest is None else newest.sequence,
            changed=tuple(change.id for change in work.changes),
            diagnostics=tuple(in_order(work.diagnostics)),
            seconds=work.seconds,
        )

    # --- the steps -----------------------------------------------------------------

    async def _read(self, work: _Pass) -> None:
        """Read the newest revision; end here if it was dealt with already."""
        try:
            work.snapshot = await self._blocking.run(self._source.newest)
        except RefusedRevisionError as error:
            work.refused = (error.revision, _LEHR)
            self._end(work, Publication.REFUSED, _not_taken(error))
            return
        except SourcesError as error:
            if error.refused:
                work.refused = (*error.refused, _LEHR)
            publication = Publication.REFUSED if error.refused else Publication.UNREADABLE
            self._end(work, publication, *with_excerpts(error.diagnostics, error.declaring))
            return
        except LehrError as error:
            self._end(work, Publication.UNREADABLE, _not_read(self._source.name, error))
            return
        last = self._store.records.attempt(self._partition)
        if last is None or last.sources != _sources(work.snapshot) or last.sequence != self._newest():
            return  # what an incarnation came from may not be recorded, and the source may have gone back
        if any(item.code in BEYOND_SOURCE for item in errors(last.diagnostics)):
            return  # a claim may have been given up, a path moved, a value entered into a database
        if last.publication is Publication.REFUSED:
            self._end(work, Publication.REFUSED, *last.diagnostics)
        elif last.publication is not Publication.UNREADABLE:
            self._end(work, Publication.UNCHANGED)

    def _newest(self) -> int:
        """Sequence of the newest incarnation; 0 if there is none."""
        newest = self._store.intent.newest(self._partition)
        return 0 if newest is None else newest.sequence

    async def _generate(self, work: _Pass) -> None:
        assert work.snapshot is not None
        try:
            generated = await self._generated(work.snapshot, work.may_be_overtaken)
        except OvertakenError:
            raise
        except LehrError as error:
            self._end(work, Publication.UNREADABLE, _not_generated(error))
            return
        work.generated = generated
        self._touch(generated.touched)
        work.diagnostics = generated.diagnostics
        if generated.partition not in (None, self._partition):
            work.diagnostics += (_other_partition(self._partition, str(generated.partition)),)
        if errors(work.diagnostics):
            self._refuse(work)
        else:
            self._registry.declare(types_for(generated, self._store.intent, self._partition))

    async def _generated(self, snapshot: Snapshot, may_be_overtaken: bool) -> Generated:
        if not may_be_overtaken:
            return await self._generation.generate(snapshot)
        return await generated_unless_overtaken(
            self._generation, snapshot, self._source, self._clock, self._blocking
        )

    def _touch(self, touched: frozenset[AssetId] | None) -> None:
        """Remember what may differ from the newest incarnation, over passes that are refused."""
        if touched is None or self._unpublished is None:
            self._unpublished = None
        else:
            self._unpublished |= touched

    async def _compare(self, work: _Pass) -> None:
        """Find how the candidate differs from the newest incarnation, in O(touched)."""
        # In a thread, as is judging: a million assets take many seconds, in which others go on.
        await self._blocking.run(self._difference, work)

    def _difference(self, work: _Pass) -> None:
        generated = work.generated
        assert generated is not None
        assert work.snapshot is not None
        predecessor = StoredPredecessor(self._store, self._registry, self._partition)
        work.changes = tuple(self._changes(predecessor, generated))
        work.candidate = Candidate(
            self._partition,
            predecessor.sequence,
            _sources(work.snapshot),
            generated.generators,
            tuple(change.after for change in work.changes if change.after is not None),
            tuple(change.id for change in work.changes if change.after is None),
            _types(predecessor, work.changes),
        )

    def _changes(self, predecessor: StoredPredecessor, generated: Generated) -> list[AssetChange]:
        ids = self._unpublished
        if ids is None:
            before = {head.id: head.digest for head in self._store.intent.heads(self._partition)}
            after = generated.assets
            ids = {id for id, asset in after.items() if before.get(id) != asset.digest}
            ids |= before.keys() - after.keys()
        found = (predecessor.change(id, generated.assets.get(id)) for id in sorted(ids))
        return [change for change in found if not _same(change.before, change.after)]

    async def _consult(self, work: _Pass) -> None:
        assert work.generated is not None
        limits = work.generated.limits or Limits()
        work.answers = await consult(limits, work.changes, self._look_up)
        if self._claims is None or not await self._blocking.run(claim_anything, work.changes, self._registry):
            return
        assert self._moved is not None
        try:
            await take_up(self._claims, self._partition, self._store, self._registry, self._blocking)
            work.claimed = await self._blocking.run(claims_of, work.changes, self._registry)
            work.conflicts = await self._moved.conflicts(work.claimed)
        except LehrError as error:
            self._end(work, Publication.UNREADABLE, register_unusable(error))

    async def _validate(self, work: _Pass) -> None:
        await self._blocking.run(self._judge, work)

    def _judge(self, work: _Pass) -> None:
        assert work.candidate is not None
        assert work.generated is not None
        assert work.snapshot is not None
        work.proposal = DeltaProposal(
            self._partition,
            self._registry,
            work.generated.limits or Limits(),
            work.changes,
            StoredPredecessor(self._store, self._registry, self._partition),
            Locator(work.snapshot),
            work.answers,
            work.conflicts,
        )
        judgement = judge(work.proposal)
        work.diagnostics += tuple(judgement.diagnostics)
        work.candidate = replace(work.candidate, acknowledged=judgement.acknowledged)
        if errors(work.diagnostics):
            self._refuse(work)
            if any(item.code == NOT_ASKED for item in errors(work.diagnostics)):
                work.publication = Publication.UNREADABLE  # which is tried again: the database may come back

    async def _confirm(self, work: _Pass) -> None:
        """Have a clean build confirm every new turndown. Invariants: I4, I11."""
        assert work.generated is not None
        assert work.snapshot is not None
        if not await self._blocking.run(_ask_for_turndown, work.changes):
            return
        generation = self._clean()
        try:
            clean = await generation.generate(work.snapshot)
        except LehrError as error:
            self._end(work, Publication.UNREADABLE, _not_generated(error))
            return
        finally:
            await generation.close()
        differing = _differing(work.generated.assets, clean.assets)
        if differing or errors(clean.diagnostics):
            work.diagnostics += (_not_confirmed(differing),)
            self._refuse(work)

    async def _claim(self, work: _Pass) -> None:
        """Keep other partitions from publishing the same claims, from now on."""
        if self._claims is None or not work.claimed:
            return
        problem = await take(self._claims, self._partition, work.claimed)
        if problem is not None:
            self._end(work, Publication.UNREADABLE, problem)

    async def _publish(self, work: _Pass) -> None:
        """Make it the newest incarnation."""
        candidate = work.candidate
        assert candidate is not None
        assert work.proposal is not None
        assert work.snapshot is not None
        if candidate.changes_nothing and candidate.base:
            self._unpublished = set()
            self._end(work, Publication.UNCHANGED, *work.diagnostics)
            return
        try:
            await self._blocking.run(self._source.keep, work.snapshot.revision)
        except LehrError as error:
            self._end(work, Publication.UNREADABLE, _not_read(self._source.name, error))
            return
        write = Publish(
            candidate,
            work.proposal.mentions,
            tuple(name for name, item in self._registry.types.items() if item.governs),
            self._clock.now(),  # a turndown stands from here on, not since the pass began
            work.proposal.claims,
        )
        answer = await self._ask(write)
        if isinstance(answer, Refused):
            self._end(work, Publication.UNREADABLE, _overtaken(answer))
            return
        assert isinstance(answer, Incarnation)
        work.incarnation = answer
        if self._moved is not None:
            self._moved.note(work.changes)
        self._unpublished = set()
        self._end(work, Publication.PUBLISHED, *work.diagnostics)

    # --- how a pass ends -----------------------------------------------------------

    def _refuse(self, work: _Pass) -> None:
        work.changes = ()
        self._end(work, Publication.REFUSED, *work.diagnostics)

    def _end(self, work: _Pass, publication: Publication, *diagnostics: Diagnostic) -> None:
        work.publication = publication
        work.diagnostics = diagnostics
        if publication in _UNPUBLISHED and not errors(diagnostics):
            work.diagnostics += (_without_reason(),)


def _sources(snapshot: Snapshot) -> tuple[SourceRevision, ...]:
    """The generating program is an input too: another version may make other assets."""
    return (*revisions_of(snapshot), _LEHR)


def _same(old: Asset | None, new: Asset | None) -> bool:
    return (old and old.digest) == (new and new.digest)


def _types(predecessor: StoredPredecessor, changes: Iterable[AssetChange]) -> dict[str, int]:
    """Number of assets of each type once `changes` are made."""
    sizes = Counter(predecessor.sizes())
    sizes.update(change.after.type for change in changes if change.after is not None)
    sizes.subtract(change.before.type for change in changes if change.before is not None)
    return {type: count for type, count in sorted(sizes.items()) if count}


def _ask_for_turndown(changes: Iterable[AssetChange]) -> bool:
    """Whether any of `changes` does."""
    return any(_turned_down(change.after) and not _turned_down(change.before) for change in changes)


def _turned_down(asset: Asset | None) -> bool:
    return asset is not None and TURNDOWN in addon_names(asset)


def _differing(one: Mapping[AssetId, Asset], other: Mapping[AssetId, Asset]) -> list[AssetId]:
    return sorted(id for id in one.keys() | other.keys() if not _same(one.get(id), other.get(id)))


def _not_taken(error: RefusedRevisionError) -> Diagnostic:
    return Diagnostic(
        code="PUB007",
        what=error.what,
        why=error.why,
        fix=error.fix,
        subject=f"{error.revision.source} at {short(error.revision.revision)}",
    )


def _not_read(name: str, error: LehrError) -> Diagnostic:
    return Diagnostic(
        code="PUB001",
        what=error.what,
        why=error.why,
        fix=error.fix or "Lehr tries again by itself",
        subject=name,
    )


def _broken(step: str, error: Exception) -> Diagnostic:
    return Diagnostic(
        code="PUB006",
        what=f"Lehr failed in the step `{step}`: {type(error).__name__}: {described(error)}",
        why="this is a defect of Lehr; the last incarnation stays in force",
        fix="report it with the log of `lehr run`, which has the traceback; Lehr tries again",
    )


def _damaged(error: DamagedError) -> Diagnostic:
    return Diagnostic(code="PUB010", what=error.what, why=error.why, fix=error.fix)


def _without_reason() -> Diagnostic:
    return Diagnostic(
        code="PUB011",
        what="the change is not published, and no step says why",
        why="this is a defect of Lehr; the last incarnation stays in force",
        fix="report it with the log of `lehr run`; `lehr validate --clean` may say more",
    )


def _not_generated(error: LehrError) -> Diagnostic:
    return Diagnostic(code="PUB002", what=error.what, why=error.why, fix=error.fix)


def _other_partition(expected: str, found: str) -> Diagnostic:
    return Diagnostic(
        code="PUB003",
        what=f"the workspace names partition {found}, but this state belongs to {expected}",
        why="assets of one partition must never be taken for those of another",
        fix=f"name it {expected} again in lehr.yaml, or use another state folder",
        subject="lehr.yaml",
    )


def _overtaken(refused: Refused) -> Diagnostic:
    return Diagnostic(code="PUB004", what="another process published first", why=refused.message)


def _not_confirmed(differing: list[AssetId]) -> Diagnostic:
    return Diagnostic(
        code="PUB005",
        what=f"a clean build makes other assets than this one: {', '.join(differing[:5]) or 'none'}",
        why="it asks for turndowns, and nothing is taken out of production on a doubtful build",
        fix="a generator depends on something it does not declare; make its output repeatable",
    )
