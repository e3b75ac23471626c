"""The store in a PostgreSQL database: for more than one machine, or more than one process.

In: writes; one transaction per commit, over one connection. Out: values, over one connection per concurrent
reader. All tables are in a schema of their own.

Architecture invariants:

* Commits that could depend on the same rows are serialized (`locks`), across processes.
* A commit that raised was not written. If the connection is lost during COMMIT, the writer asks the server
  before it returns (`writer`).
* Lost connections are reopened automatically when next needed.

Importing it needs the driver: `pip install 'lehr[postgres]'`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lehr.base.errors import StalledError
from lehr.model.damage import Advance, Damage, TypesOf
from lehr.model.writes import Publish, Write
from lehr.store.postgres import publication, tables
from lehr.store.postgres.address import Address
from lehr.store.postgres.connections import Connector
from lehr.store.postgres.errors import DAMAGE
from lehr.store.postgres.intent import PostgresIntent
from lehr.store.postgres.locks import keys_of
from lehr.store.postgres.session import Readers
from lehr.store.postgres.writer import Writer
from lehr.store.sql.carriers import carriers, carry_out
from lehr.store.sql.record_queries import SqlRecords

__all__ = ["Address", "PostgresStore"]


class PostgresStore:
    """`lehr.sdk.store.CheckableStore` in a PostgreSQL database.

    `commit` may run in a different thread from the reads, but in one thread at a time.
    """

    def __init__(self, address: Address, *, read_only: bool = False) -> None:
        """Connect; unless `read_only`, create missing tables.

        Raises:
            TransientError, StalledError: see `Connector.connect`.
        """
        self._address = address
        connector = Connector(address)
        self._writer = None if read_only else Writer(connector)
        self._readers = Readers(connector)
        try:
            with self._readers.session() as db:
                tables.require_version(tables.version_of(db.connection, address), address)
        except BaseException:
            self.close()
            raise
        self.intent = PostgresIntent(self._readers.session, self._readers.moment)
        self.records = SqlRecords(self._readers.session)

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        if self._writer is None:
            raise StalledError(f"the store at {self._address.place} was opened read-only", code="STO111")
        return self._writer.transact(
            keys_of(self._address.schema, writes),
            lambda db: carry_out(db, _CARRIERS, writes),
            # COPY cannot be pipelined.
            pipelined=not any(isinstance(write, Publish) for write in writes),
        )

    def check(
        self, types: TypesOf, began: Advance = lambda rows: None, advance: Advance = lambda rows: None
    ) -> Iterator[Damage]:
        # Few commands check, and start-up time counts.
        from lehr.store.sql.check import check, rows  # noqa: PLC0415

        with self._readers.moment() as db:
            began(rows(db))
            yield from check(db, types, advance, DAMAGE)

    def close(self) -> None:
        self._readers.close()
        if self._writer is not None:
            self._writer.close()


_CARRIERS = carriers(publication.publish)
