"""The asset plugin of `lehr.DatabaseSchema`: plugin authors can read it from top to bottom.

Its neighbours: `payload` is what people write, `connection` where a database is; `catalogue` holds a schema
as values; `plan` finds differences, and the edits in order that fix them; `conversion` knows what happens to
rows when a type changes; `statements` writes edits as SQL; `databases` opens databases; `session` is the
interface of one, which `postgres` and `sqlite` implement; `discovery` drafts intent from existing tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec

from lehr.base.blocking import Blocking, Tracked
from lehr.base.clock import Clock
from lehr.base.digest import Digest, digest
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import AssetKey, Partition
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.plugins.database import discovery
from lehr.plugins.database.catalogue import Catalogue
from lehr.plugins.database.databases import Databases
from lehr.plugins.database.payload import DATABASE_SCHEMA, DatabaseSchema, Intended
from lehr.plugins.database.plan import SchemaPlan, missing_database, plan
from lehr.plugins.database.session import ConnectionLostError
from lehr.sdk.plugin import AssetPlugin, Found, IndexedDiff, Push, Reader, Traits
from lehr.sdk.secrets import NoSecrets, Secrets, SecretValue

_WATCH_EVERY = 2.0  # seconds
_WATCH_AT_ONCE = 2  # databases: one that hangs delays only the others' hints
_WATCH_FOR = 600.0  # seconds after the last diff
_NOTHING = digest("no database")


class _Watched(msgspec.Struct, frozen=True):
    """The last diff's view; `seen` is None if it saw nothing."""

    intended: Intended
    seen: Digest | None
    until: float


class _Request(NamedTuple):
    number: int
    key: AssetKey
    schema: DatabaseSchema


class DatabasePlugin(AssetPlugin):
    """Keeps tables, columns and indexes as intended.

    * Production is the database's own catalogue, and the version kept next to it.
    * A diff names tables, columns, indexes and the version, in the database's words. Its effects have both
      versions, which others wait for, and show whether rows, values or guarantees would be lost.
    * A push takes one step after another: the database, if it should be created; one transaction with all
      edits except indexes; each index, built concurrently. Every step takes a lock and compares again first,
      so that two pushes never overlap, and none acts on stale data.
    * Its outcome is unknown when the connection ends in a step, which may or may not have been carried out.
      `status` waits for the thread; the server ends what a killed process had begun.
    * It never reads rows, takes a database down, or destroys anything except as part of the exact diff that a
      person approved.

    Args:
        base: the directory that relative paths start from.
        blocking: a pool of this plugin's own, of `threads`, closed with it.
        clock: time.
        secrets: provides passwords.
    """

    types = (DATABASE_SCHEMA,)
    traits = Traits(goals=frozenset(), turns=8, pushes=4, push_timeout=3600.0)
    threads: ClassVar[int] = traits.turns + traits.pushes + _WATCH_AT_ONCE

    def __init__(
        self, base: Path, blocking: Blocking, clock: Clock, *, secrets: Secrets | None = None
    ) -> None:
        self._databases = Databases(base.absolute())
        self._blocking = blocking
        self._steps = Tracked(blocking)
        self._clock = clock
        self._secrets = secrets or NoSecrets()
        self._watched: dict[AssetKey, _Watched] = {}

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare the catalogue with intent; see `plan.plan` for the paths."""
        [(_, found)] = await self._compare([_Request(0, target.key, _payload(target, read))])
        if isinstance(found, LehrError):
            raise found
        return found

    async def diff_many(self, requests: Sequence[tuple[Target, Reader]]) -> AsyncIterator[IndexedDiff]:
        """Compare with one read of each catalogue. Leaves out schemas that must be read alone."""
        databases: dict[tuple[object, ...], list[_Request]] = {}
        for index, (target, read) in enumerate(requests):
            try:
                schema = _payload(target, read)
            except LehrError as error:
                yield index, error
            else:
                database = schema.connection, schema.password, schema.create_database
                databases.setdefault(database, []).append(_Request(index, target.key, schema))
        calls = [asyncio.create_task(self._compare(asked)) for asked in databases.values()]
        try:
            for call in asyncio.as_completed(calls):
                for answer in await call:
                    yield answer
        finally:
            for call in calls:
                call.cancel()

    async def _compare(self, requests: Sequence[_Request]) -> list[IndexedDiff]:
        """Compare schemas of one database, with one connection."""
        schemas = [request.schema for request in requests]
        try:
            intended = await self._with_password(schemas[0])
            for _, key, schema in requests:
                before = self._watched.get(key)
                self._note(key, Intended(schema, intended.password), None if before is None else before.seen)
            found = await self._blocking.run(self._look, schemas, intended.password)
        except LehrError as error:
            return [(request.number, error) for request in requests]
        answers: list[IndexedDiff] = []
        for (number, key, schema), seen in zip(requests, found, strict=True):
            if seen is not None:
                self._note(key, Intended(schema, intended.password), seen[1])
                answers.append((number, seen[0]))
        return answers

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Take one step after another, each planned from the current state, until none is left."""
        intended, approved = await self._with_password(_payload(target, read)), push.operation.diff_digest
        # The database, the transaction, each index, the version. The next diff reports any remaining
        # difference.
        most = 3 + sum(len(table.indexes) for table in intended.schema.tables.values())
        try:
            for _ in range(most):
                if push.superseded:
                    return Outcome(Result.FAILED, "superseded")
                done = await self._steps.run(target.key, self._advance, intended, approved)
                if done is None:
                    break
                push.progress(done)
        except ConnectionLostError as error:
            return Outcome(Result.UNKNOWN, str(error))
        return DONE

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while a step that a cancelled push had begun has not returned.

        A step that a killed process had begun holds the lock that every push takes first.
        """
        return Progress.RUNNING if self._steps.busy(operation.key) else Progress.ENDED

    async def watch(self) -> AsyncIterator[AssetKey]:
        """Keys of assets whose catalogue changed, or whose database appeared or went away."""
        places = asyncio.Semaphore(_WATCH_AT_ONCE)

        async def look(item: _Watched) -> Digest | None:
            async with places:
                return await self._blocking.run(self._fingerprint, item.intended)

        while True:
            await self._clock.sleep(_WATCH_EVERY)
            watched = dict(self._watched)
            looks = (look(item) for item in watched.values())
            for (key, item), seen in zip(watched.items(), await asyncio.gather(*looks), strict=True):
                if self._watched.get(key) is not item:
                    continue  # a diff has run since
                if item.until < self._clock.monotonic():
                    del self._watched[key]
                elif seen != item.seen:
                    # Reported once; the next diff records the state.
                    self._watched[key] = _Watched(item.intended, seen, item.until)
                    yield key

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        """A draft of each schema of the database that `query` begins with; patterns of tables follow."""
        for draft in await self._blocking.run(discovery.drafts, self._databases, query):
            yield draft

    async def close(self) -> None:
        self._blocking.close()
        self._databases.interrupt()  # or ending this process would wait for a long build

    async def _with_password(self, schema: DatabaseSchema) -> Intended:
        if schema.password is None:
            return Intended(schema)
        return Intended(schema, await self._secrets.read(schema.password))

    def _note(self, key: AssetKey, intended: Intended, seen: Digest | None) -> None:
        self._watched[key] = _Watched(intended, seen, self._clock.monotonic() + _WATCH_FOR)

    # --- in a thread -------------------------------------------------------------

    def _look(
        self, schemas: Sequence[DatabaseSchema], password: SecretValue | None
    ) -> list[tuple[Diff, Digest] | None]:
        with self._databases.open(schemas[0], password) as session:
            if session is None:
                return [
                    (missing_database(schema.address.place, schema.version), _NOTHING) for schema in schemas
                ]
            if len(schemas) == 1:
                with session.transaction(write=False):
                    observed = session.observed(schemas[0])
                    return [_found(session.intended(schemas[0]), observed)]
            try:
                with session.transaction(write=False):
                    return [None if pair is None else _found(*pair) for pair in session.together(schemas)]
            except LehrError:  # it may concern one of them only
                return [None] * len(schemas)

    def _fingerprint(self, intended: Intended) -> Digest | None:
        """Digest of everything that `diff` compares with; None while it cannot be read."""
        try:
            with self._databases.open(*intended) as session:
                if session is None:
                    return _NOTHING
                with session.transaction(write=False):
                    return digest(session.observed(intended.schema))
        except LehrError:
            return None

    def _advance(self, intended: Intended, approved: Digest) -> str | None:
        """Take the first step that is needed now; returns it, or None if there was none.

        Invariant: I4. Destructive edits are carried out only as part of the exact diff that the push was
            admitted with, in the transaction that has found it again.
        """
        schema = intended.schema
        with self._databases.open(*intended) as session:
            if session is None:
                self._databases.create(*intended)
                return "created the database"
            with session.transaction(write=True):
                todo = plan(session.intended(schema), session.observed(schema))
                _allow(todo, approved)
                for edit in todo.transaction:
                    session.execute(edit)
            if todo.transaction:
                return f"carried out {len(todo.transaction)} changes in one transaction"
            for build in todo.builds[:1]:
                session.execute(build)
                return f"built index {build.index}"
        return None


def _payload(target: Target, read: Reader) -> DatabaseSchema:
    schema = read.payload(target.id, DatabaseSchema)
    if target.goal is not Goal.PRESENT:
        raise StalledError(
            f"a {DATABASE_SCHEMA} cannot be {target.goal}",
            code="DBS107",
            why="Lehr never drops databases",
            fix="drop tables with `absent: true`, then let the asset go",
        )
    return schema


def _found(intended: Catalogue, observed: Catalogue) -> tuple[Diff, Digest]:
    return plan(intended, observed).diff, digest(observed)


def _allow(todo: SchemaPlan, approved: Digest) -> None:
    if todo.obstacle is not None:
        path, fix = todo.obstacle
        raise StalledError(f"{path} cannot be changed in place", code="DBS108", fix=fix)
    if todo.diff.effects.destructive and todo.diff.digest() != approved:
        raise TransientError(
            "production has changed since this was approved",
            code="DBS109",
            why="the push would now destroy something other than the approved diff shows",
            fix="review the new diff, and approve it if it is right",
        )
