"""Stores that break one rule each, and the trouble that a store can be in."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.base.digest import Digest, digest
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetKey, Partition
from lehr.model.decision import Decision
from lehr.model.incarnation import Incarnation
from lehr.model.operation import Operation, Outcome, Result
from lehr.model.reason import Reason
from lehr.model.writes import (
    Admit,
    Adopt,
    Basis,
    Finish,
    Import,
    KeepHandle,
    KeepLease,
    KeepOutputs,
    LiftControl,
    Prune,
    Publish,
    RecordDecision,
    Refused,
    Reschedule,
    ReturnLease,
    SetControl,
    TakeLease,
    WriteReleases,
)
from lehr.sdk.store import Head, Standing, Store
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import PARTITION, decision, publication


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


class Wrapped:
    """A store that passes everything on; the broken ones below change one thing each."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Broken(Wrapped):
    """A store whose writes and answers go through `before` and `after`."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.intent = BrokenIntent(store.intent, self)
        self.records = BrokenRecords(store.records, self)

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        answers = self._store.commit([self.before(write) for write in writes])
        return [self.after(write, answer) for write, answer in zip(writes, answers, strict=True)]

    def before(self, write: Any) -> Any:
        return write

    def after(self, write: Any, answer: Any) -> Any:
        return answer

    def newest(self, partition: Partition) -> Incarnation | None:
        found: Incarnation | None = self._store.intent.newest(partition)
        return found


class BrokenIntent(Wrapped):
    def __init__(self, intent: Any, store: Broken) -> None:
        super().__init__(intent)
        self.store = store


class BrokenRecords(BrokenIntent):
    pass


def with_intent(**methods: Callable[..., Any]) -> type[Broken]:
    """A store whose reader of intent answers these questions wrongly; each gets the right reader."""
    return _with("intent", methods)


def with_records(**methods: Callable[..., Any]) -> type[Broken]:
    """The same for its reader of records."""
    return _with("records", methods)


def _with(part: str, methods: dict[str, Callable[..., Any]]) -> type[Broken]:
    class Lying(Broken):
        def __init__(self, store: Store) -> None:
            super().__init__(store)
            right = getattr(store, part)
            for name, method in methods.items():
                setattr(
                    getattr(self, part),
                    name,
                    lambda *args, _method=method, **kwargs: _method(right, *args, **kwargs),
                )

    return Lying


# --- writes ------------------------------------------------------------------


class Piecemeal(Broken):
    """Commits each write on its own."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        return [self._store.commit([write])[0] for write in writes]


class LastWriterWins(Broken):
    """Publishes over whatever is the newest."""

    def before(self, write: Any) -> Any:
        if not isinstance(write, Publish):
            return write
        newest = self.newest(write.candidate.partition)
        return replace(write, candidate=replace(write.candidate, base=newest.sequence if newest else 0))


class SaysNothing(Broken):
    """Refuses without saying why."""

    def after(self, write: Any, answer: Any) -> Any:
        return replace(answer, message="") if isinstance(answer, Refused) else answer


def trusting(**parts: Callable[[Broken, Admit], Any]) -> type[Broken]:
    """A store that takes some parts of a push's basis as given instead of looking."""

    class Trusting(Broken):
        def before(self, write: Any) -> Any:
            if not isinstance(write, Admit):
                return write
            return replace(write, **{name: part(self, write) for name, part in parts.items()})

    return Trusting


def _basis(**fields: Callable[[Broken, AssetKey], Any]) -> Callable[[Broken, Admit], Basis]:
    def refreshed(store: Broken, admit: Admit) -> Basis:
        return replace(
            admit.basis, **{name: field(store, admit.operation.key) for name, field in fields.items()}
        )

    return refreshed


def _under_the_newest(store: Broken, admit: Admit) -> Operation:
    newest = store.newest(admit.operation.partition)
    return admit.operation if newest is None else replace(admit.operation, governing=newest.sequence)


def _governance(store: Broken, key: AssetKey) -> Digest:
    newest = store.newest(key.partition)
    return newest.governance if newest else Digest("")


def _controls(store: Broken, key: AssetKey) -> int:
    version: int = store.records.controls(key.partition, 0.0)[0]
    return version


def _digest(store: Broken, key: AssetKey) -> Digest | None:
    heads: list[Head] = list(store.intent.heads(key.partition, [key.id]))
    return heads[0].digest if heads else None


class ForgetsInputsOfPushes(Broken):
    """Keeps only the inputs of decisions that come on their own."""

    def before(self, write: Any) -> Any:
        return replace(write, inputs=b"") if isinstance(write, Admit) else write


class ForgetsUnknown(Broken):
    """Takes an unknown outcome for a failure."""

    def before(self, write: Any) -> Any:
        if isinstance(write, Finish) and write.outcome.result is Result.UNKNOWN:
            return replace(write, outcome=Outcome(Result.FAILED, write.outcome.message))
        return write


class NeverEnds(Broken):
    """Takes a stalled push for one that goes on."""

    def before(self, write: Any) -> Any:
        if isinstance(write, Finish) and write.outcome.result is Result.STALLED:
            return replace(write, outcome=Outcome(Result.UNKNOWN, write.outcome.message))
        return write


class EntersLateEnds(Broken):
    """Writes the ledger of whoever claims to have ended."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        answers = super().commit(writes)
        entries = [write.ledger for write in writes if isinstance(write, Finish) and write.ledger]
        self._store.commit([Adopt(entry) for entry in entries])
        return answers


class DecidesApart(Broken):
    """Forgets the decision that comes with an admission."""

    def before(self, write: Any) -> Any:
        return replace(write, decision=None) if isinstance(write, Admit) else write


class AdmitsFirst(Broken):
    """Carries out the admissions of a commit before everything else."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        order = sorted(range(len(writes)), key=lambda place: not isinstance(writes[place], Admit))
        answers = dict(zip(order, super().commit([writes[place] for place in order]), strict=True))
        return [answers[place] for place in range(len(writes))]


class DecidesAnyway(Broken):
    """Records the decision of a push that it refuses."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        for write in writes:
            if isinstance(write, Admit):
                self._store.commit([RecordDecision(decision(write.operation.asset, Reason.PUSHING))])
        return super().commit(writes)


class LosesReservations(Broken):
    """Counts a windowed start only while its push runs."""

    def before(self, write: Any) -> Any:
        if isinstance(write, Admit):
            return replace(write, reservations=tuple(replace(r, window=None) for r in write.reservations))
        return write


class OneLease(Broken):
    """Hands the same epoch to everybody."""

    def after(self, write: Any, answer: Any) -> Any:
        return 1 if isinstance(write, TakeLease) else answer


class TouchDecides(Broken):
    """Takes a touch for a decision."""

    def before(self, write: Any) -> Any:
        if not isinstance(write, Reschedule):
            return write
        return RecordDecision(replace(decision(write.key.id), condition=write.condition))


class LiftsForeignControls(Broken):
    """Says that everything was lifted."""

    def after(self, write: Any, answer: Any) -> Any:
        return True if isinstance(write, LiftControl) else answer


class Forgets(Broken):
    """Takes its file with it when it is closed."""

    def close(self) -> None:
        self._store.close()
        self._store._path.unlink()


class WritesAtTheEnd(Broken):
    """Keeps what it is told to commit until it is closed, and answers from memory."""

    def __init__(self, store: Store) -> None:
        self._file: Path = store._path  # type: ignore[attr-defined]
        store.close()
        self._held = self._file.with_name(f"held-{id(self)}")
        if self._file.exists():
            shutil.copy(self._file, self._held)
        super().__init__(SqliteStore(self._held))

    def close(self) -> None:
        self._store.close()
        shutil.copy(self._held, self._file)


class StaysWhereAReadBegan(Broken):
    """Reads all from one moment while a read of assets is under way."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._moment: Incarnation | None = None
        setattr(self.intent, "assets", self._assets)  # noqa: B010 - passed on otherwise
        setattr(self.intent, "newest", self._newest)  # noqa: B010

    def _assets(self, partition: Partition, *args: Any) -> Iterator[Asset]:
        self._moment = self._store.intent.newest(partition)
        yield from self._store.intent.assets(partition, *args)
        self._moment = None

    def _newest(self, partition: Partition) -> Incarnation | None:
        return self._moment or self._store.intent.newest(partition)


class ReadsAsItWasOpened(Broken):
    """Looks at a copy, unless it has written itself."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._first = store.intent.newest(PARTITION)
        self._wrote = False
        setattr(self.intent, "newest", self._newest)  # noqa: B010 - passed on otherwise

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        self._wrote = True
        return super().commit(writes)

    def _newest(self, partition: Partition) -> Incarnation | None:
        found: Incarnation | None = self._store.intent.newest(partition)
        return found if self._wrote else self._first


class AnswersInReverse(Broken):
    def commit(self, writes: Sequence[Any]) -> list[Any]:
        return super().commit(writes)[::-1]


class DigestsHistory(Broken):
    """Two incarnations never have the same digest."""

    def after(self, write: Any, answer: Any) -> Any:
        if not isinstance(answer, Incarnation):
            return answer
        return replace(answer, digest=digest([answer.digest, answer.sequence]))


class EverythingGoverns(Broken):
    def after(self, write: Any, answer: Any) -> Any:
        return replace(answer, governance=answer.digest) if isinstance(answer, Incarnation) else answer


def refusing(when: Callable[[Broken, Admit], bool]) -> type[Broken]:
    """A store that refuses more than it must."""

    class Refusing(Broken):
        def commit(self, writes: Sequence[Any]) -> list[Any]:
            if any(isinstance(write, Admit) and when(self, write) for write in writes):
                return [Refused(Reason.OVERTAKEN, "something has changed") for _ in writes]
            return super().commit(writes)

    return Refusing


def _newer(store: Broken, write: Admit) -> bool:
    newest = store.newest(write.operation.partition)
    return newest is not None and newest.sequence > write.operation.governing


def _gone(store: Broken, write: Admit) -> bool:
    return write.basis.newest_digest is None


class FirstWordStands(Broken):
    """Keeps the first entry of the ledger."""

    def before(self, write: Any) -> Any:
        if not isinstance(write, Adopt):
            return write
        key = AssetKey(write.ledger.partition, write.ledger.asset)
        return Adopt(self.records.ledger(key) or write.ledger)


class FirstHandleStays(Broken):
    """Keeps the first handle, whatever is returned later."""

    def before(self, write: Any) -> Any:
        if not isinstance(write, KeepHandle):
            return write
        return KeepHandle(self.records.handle(write.handle.key) or write.handle)


class OutputsAddUp(Broken):
    """Keeps outputs until each is replaced."""

    def before(self, write: Any) -> Any:
        if not isinstance(write, KeepOutputs) or not write.outputs.values:
            return write
        known = self.records.outputs_of(write.outputs.key)
        values = {} if known is None else known.values
        return KeepOutputs(replace(write.outputs, values=values | write.outputs.values))


class OutputsStay(Broken):
    """Never forgets outputs."""

    def before(self, write: Any) -> Any:
        if not isinstance(write, KeepOutputs) or write.outputs.values:
            return write
        return KeepOutputs(self.records.outputs_of(write.outputs.key) or write.outputs)


class WritesAscii(Broken):
    def before(self, write: Any) -> Any:
        if not isinstance(write, RecordDecision):
            return write
        return RecordDecision(
            msgspec.json.decode(msgspec.json.encode(write.decision).decode("ascii", "ignore"), type=Decision)
        )


class KeepsLostLeases(Broken):
    """Does not mind who holds the lease."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        return super().commit([write for write in writes if not isinstance(write, KeepLease)]) or [None]


class TakesAnyLease(Broken):
    """Does not mind who else has a lease."""

    def before(self, write: Any) -> Any:
        return replace(write, owner="everybody") if isinstance(write, TakeLease) else write


class HoldsLeasesAgainstTheirOwner(Broken):
    """Takes whoever comes back for somebody else."""

    taken = 0

    def before(self, write: Any) -> Any:
        if not isinstance(write, TakeLease):
            return write
        self.taken += 1
        return replace(write, owner=f"{write.owner} {self.taken}")


class NeverReturnsLeases(Broken):
    def commit(self, writes: Sequence[Any]) -> list[Any]:
        return super().commit([write for write in writes if not isinstance(write, ReturnLease)]) or [None]


class NeverRenewsLeases(Broken):
    """Only checks who has a lease."""

    def before(self, write: Any) -> Any:
        return replace(write, seconds=1e-6) if isinstance(write, KeepLease) else write


class ReturnsForeignLeases(Broken):
    """Returns a lease for whoever had one before."""

    def before(self, write: Any) -> Any:
        return replace(write, epoch=write.epoch + 1) if isinstance(write, ReturnLease) else write


class WritesLater(Broken):
    """Says that it has written what it could not write."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        try:
            return super().commit(writes)
        except TransientError:
            return [None for _ in writes]


class SaysWhatSqliteSays(Broken):
    def commit(self, writes: Sequence[Any]) -> list[Any]:
        try:
            return super().commit(writes)
        except TransientError as error:
            raise sqlite3.OperationalError("database is locked") from error


class WritesHalf(Broken):
    """Writes what it could not write as soon as it can."""

    pending: tuple[Any, ...] = ()

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._standings = store.records.standings
        setattr(self.records, "standings", self._late)  # noqa: B010 - passed on otherwise

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        try:
            return super().commit(writes)
        except TransientError:
            self.pending = tuple(writes)
            raise

    def _late(self, partition: Partition) -> Iterator[Standing]:
        pending, self.pending = self.pending, ()
        super().commit(pending)
        return self._standings(partition)


# --- pruning -----------------------------------------------------------------


def pruning(**changed: Any) -> type[Broken]:
    """A store that prunes something else than it is asked to."""

    class Pruning(Broken):
        def before(self, write: Any) -> Any:
            return replace(write, **changed) if isinstance(write, Prune) else write

    return Pruning


def forgetting(table: str) -> type[Broken]:
    """A store that looks at nothing in `table` when it prunes."""

    class Forgetting(Broken):
        def commit(self, writes: Sequence[Any]) -> list[Any]:
            if any(isinstance(write, Prune) for write in writes):
                with contextlib.closing(sqlite3.connect(self._store._path)) as db, db:
                    db.execute(f"DELETE FROM {table}")
            return super().commit(writes)

    return Forgetting


class PrunesTooMuch(Broken):
    """Takes a version with it that is still read."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        answers = super().commit(writes)
        if any(isinstance(write, Prune) for write in writes):
            with contextlib.closing(sqlite3.connect(self._store._path)) as db, db:
                db.execute("DELETE FROM asset_version WHERE number = (SELECT min(number) FROM asset_version)")
        return answers


class PrunesFeedsByTime(Broken):
    """Removes every old entry of the feed, wherever it is."""

    def after(self, write: Any, answer: Any) -> Any:
        if isinstance(write, Prune):
            with contextlib.closing(sqlite3.connect(self._store._path)) as db, db:
                db.execute("DELETE FROM feed WHERE at < ?", (write.before,))
        return answer


class ReportsRefusals(Broken):
    """Has an entry of the feed for what it refuses."""

    def after(self, write: Any, answer: Any) -> Any:
        if isinstance(answer, Refused):
            self._store.commit([RecordDecision(decision("a", answer.reason))])
        return answer


class PinsToAnything(Broken):
    """Says that it holds assets where nobody can read them."""

    def after(self, write: Any, answer: Any) -> Any:
        return None if isinstance(write, SetControl) else answer


# --- releases ----------------------------------------------------------------


class ReleasesForAnyone(Broken):
    """Does not ask whether the writer saw the newest releases and governance."""

    def before(self, write: Any) -> Any:
        if not isinstance(write, WriteReleases):
            return write
        newest = self._store.intent.newest(write.partition)
        governance = Digest("") if newest is None else newest.governance
        version, _ = self._store.records.released(write.partition)
        return replace(write, version=version, governance=governance)


class ReleasesOneByOne(ReleasesForAnyone):
    """Writes what it can of several releases, and answers with the last refusal."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        [write] = writes
        if not isinstance(write, WriteReleases):
            return super().commit(writes)
        alone = [replace(write, releases=(item,), withdrawn=()) for item in write.releases]
        alone.append(replace(write, releases=()))
        answers = [super(ReleasesOneByOne, self).commit([item])[0] for item in alone]
        return [next(filter(None, answers), None)]


class NeverWithdraws(Broken):
    """What is released stays so."""

    def before(self, write: Any) -> Any:
        return replace(write, withdrawn=()) if isinstance(write, WriteReleases) else write


class AdmitsWhatIsNotReleased(Broken):
    """Takes every push to rest on the newest releases."""

    def before(self, write: Any) -> Any:
        if not isinstance(write, Admit):
            return write
        version, _ = self._store.records.released(write.operation.partition)
        return replace(write, basis=replace(write.basis, releases=version))


class AnyReleaseRefusesAll(Broken):
    """Takes every push to rest on the releases of all assets."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        for write in writes:
            if isinstance(write, Admit):
                version, _ = self._store.records.released(write.operation.partition)
                if version != write.basis.releases:
                    return [Refused(Reason.RELEASES_CHANGED, "something was released")]
        return super().commit(writes)


class PrunesWhatIsReleased(Broken):
    """Lets go of all releases before it prunes."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        for write in writes:
            if isinstance(write, Prune):
                version, released = self._store.records.released(write.partition)
                newest = self._store.intent.newest(write.partition)
                ids = [
                    item.id for one in released for item in self._store.records.releases(("one", one.asset))
                ]
                gone = WriteReleases(write.partition, version, newest.governance, 0.0, (), tuple(ids))
                self._store.commit([gone])
        return super().commit(writes)


class EvidenceAfterARefusal(Broken):
    """Writes evidence down, whatever becomes of the releases."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        [write] = writes
        if not isinstance(write, WriteReleases):
            return super().commit(writes)
        [answer] = super().commit([write])
        if answer is not None:
            newest = self._store.intent.newest(write.partition)
            version, _ = self._store.records.released(write.partition)
            alone = replace(write, version=version, governance=newest.governance, releases=(), withdrawn=())
            self._store.commit([alone])
        return [answer]


# --- importing ---------------------------------------------------------------


class EnforcesImports(Broken):
    """Publishes what it imports."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        answers = super().commit(writes)
        for write in writes:
            if isinstance(write, Import):
                self._store.commit([publication(2, *self._store.intent.imported_assets("one@1"))])
        return answers


class ImportsAnything(Broken):
    """Says that it has imported what it has not."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        try:
            return super().commit(writes)
        except StalledError:
            return [None for _ in writes]


class ReplacesImports(Broken):
    def before(self, write: Any) -> Any:
        return replace(write, replace=True) if isinstance(write, Import) else write
