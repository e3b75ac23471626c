"""DBOS, through the client of its library, which reads and writes the system database of an application.

The id of a run begins with that of its asset and ends with the push that started it. The deduplication id is
that of the asset, and a queue has one run with it at a time. Arguments and errors are JSON (`portable`).
"""

from __future__ import annotations

import types
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from dbos import DBOSClient, EnqueueOptions, WorkflowSerializationFormat, WorkflowStatus, _serialization
from dbos import error as dbos_errors

from lehr.base.blocking import Blocking
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.base.text import one_line
from lehr.model.asset import AssetKey
from lehr.plugins.database.connection import PostgresAddress, SqliteAddress
from lehr.plugins.workflow.addresses import Dbos
from lehr.plugins.workflow.engines import (
    MOST_STEPS,
    BusyError,
    Order,
    Run,
    RunProgress,
    RunState,
    UnansweredError,
    id_of,
)
from lehr.sdk.secrets import SecretValue

T = TypeVar("T")
_CONNECTIONS = 4
_SETTINGS = "-c statement_timeout=10000 -c lock_timeout=5000"
_CONNECT_SECONDS = 5
_MOST_MESSAGE = 300

_STATES = {
    "SUCCESS": RunState.COMPLETED,
    "ERROR": RunState.FAILED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": RunState.FAILED,
    "CANCELLED": RunState.CANCELLED,
}
"""All others have not ended."""

_ours: ContextVar[bool] = ContextVar("reads the database of an application for Lehr", default=False)


class DbosEngine:
    """`lehr.plugins.workflow.engines.Engine` over the system database of an application with DBOS.

    Args:
        password: of the user; None for none.
        base: the directory that the path of a database is relative to.
        blocking: threads. A start takes as long as the database needs: it must not be left behind in one.
    """

    def __init__(self, address: Dbos, password: SecretValue | None, base: Path, blocking: Blocking) -> None:
        self._address = address
        self._password = password
        self._base = base
        self._blocking = blocking
        self._opened: tuple[DBOSClient, sa.Engine | None] | None = None
        _refuse_pickles()

    async def start(self, order: Order) -> None:
        options: EnqueueOptions = {
            "workflow_name": order.workflow,
            "queue_name": self._address.queue,
            "workflow_id": f"{id_of(order.asset)}:{order.operation}",
            "deduplication_id": id_of(order.asset),
            "workflow_timeout": order.seconds,
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
            "attributes": {"lehr": {"operation": order.operation, "work": order.work}},
        }
        await self._blocking.run(self._start, self._client(), options, order)

    async def find(self, asset: AssetKey) -> Run | None:
        return await self._blocking.run(self._find, self._client(), f"{id_of(asset)}:")

    async def progress(self, run: Run) -> RunProgress:
        return await self._blocking.run(self._progress, self._client(), run)

    async def cancel(self, run: Run, signal: str) -> None:
        def ask(client: DBOSClient) -> None:
            if signal:
                portable = WorkflowSerializationFormat.PORTABLE
                client.send(run.id, "end", topic=signal, idempotency_key=signal, serialization_type=portable)
            else:
                client.cancel_workflow(run.id)

        await self._blocking.run(self._asked, self._client(), ask)

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await self._blocking.run(_close, *opened)

    def _client(self) -> DBOSClient:
        """A client, which connects when it is used."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened[0]

    # --- in a thread -------------------------------------------------------------

    def _start(self, client: DBOSClient, options: EnqueueOptions, order: Order) -> None:
        self._require_file()
        try:
            client.enqueue(options, order.argument)
        except dbos_errors.DBOSQueueDeduplicatedError:
            raise BusyError(f"{id_of(order.asset)} has a run that has not ended", code="WFL119") from None
        except (sa.exc.ProgrammingError, sa.exc.DataError, dbos_errors.DBOSException) as error:
            raise self._error(error) from None
        except (sa.exc.SQLAlchemyError, OSError) as error:
            raise UnansweredError(
                f"it is not known whether {order.workflow} was started", code="WFL120", why=_why(error)
            ) from None

    def _find(self, client: DBOSClient, prefix: str) -> Run | None:
        found = self._asked(
            client,
            lambda client: client.list_workflows(
                workflow_id_prefix=prefix, limit=1, sort_desc=True, load_input=False, load_output=False
            ),
        )
        if not found:
            return None
        [status] = found
        message = ""
        if status.status == "ERROR":
            id = status.workflow_id
            found = self._asked(
                client, lambda client: client.list_workflows(workflow_ids=[id], load_input=False)
            )
            message = _message(found[0].error) if found else ""
        elif status.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
            message = "it was recovered too often"
        known = (status.attributes or {}).get("lehr")
        work = str(known.get("work", "")) if isinstance(known, dict) else ""
        operation = status.workflow_id.removeprefix(prefix)
        return Run(status.workflow_id, _state(status), "", operation, work, message)

    def _progress(self, client: DBOSClient, run: Run) -> RunProgress:
        steps = self._asked(
            client,
            lambda client: client.list_workflow_steps(run.id, load_output=False, limit=MOST_STEPS),
        )
        ended = tuple(f"{step['function_name']} has ended" for step in steps)
        if ended or not run.running:
            return RunProgress(ended)
        found = self._asked(
            client,
            lambda client: client.list_workflows(workflow_ids=[run.id], load_input=False, load_output=False),
        )
        waits = bool(found) and found[0].status in ("DELAYED", "ENQUEUED")
        return RunProgress(now=f"waits for a worker on queue {self._address.queue}" if waits else "")

    def _asked(self, client: DBOSClient, ask: Callable[[DBOSClient], T]) -> T:
        self._require_file()
        token = _ours.set(True)
        try:
            return ask(client)
        except (sa.exc.SQLAlchemyError, dbos_errors.DBOSException, OSError) as error:
            raise self._error(error) from None
        finally:
            _ours.reset(token)

    def _require_file(self) -> None:
        """The library would create the file of a database that does not exist."""
        if isinstance(self._address.place, SqliteAddress) and not self._file().exists():
            raise TransientError(
                f"database {self._file()} does not exist",
                code="WFL121",
                fix="start the application, or correct `engine.dbos.database`",
            )

    def _open(self) -> tuple[DBOSClient, sa.Engine | None]:
        place, name = self._address.place, self._address.application or None
        if isinstance(place, PostgresAddress):
            engine = sa.create_engine(
                _url(place, self._password),
                pool_size=_CONNECTIONS,
                pool_pre_ping=True,
                pool_timeout=_CONNECT_SECONDS,
                connect_args={"connect_timeout": _CONNECT_SECONDS, "options": _SETTINGS},
            )
            client = DBOSClient(
                system_database_engine=engine,
                dbos_system_schema=self._address.schema,
                application_name=name,
                retry_connection_errors=False,
                lazy=True,
            )
            return client, engine
        url = f"sqlite:///{self._file()}"
        return DBOSClient(
            system_database_url=url, application_name=name, retry_connection_errors=False, lazy=True
        ), None

    def _file(self) -> Path:
        place = self._address.place
        assert isinstance(place, SqliteAddress)
        return self._base / place.path

    def _error(self, error: Exception) -> LehrError:
        where = self._address.place.place
        if isinstance(error, sa.exc.ProgrammingError | dbos_errors.DBOSException):
            return StalledError(
                f"{where} is not usable as a system database of DBOS",
                code="WFL122",
                why=_why(error),
                fix="start the application once, give it the version of DBOS that Lehr has, or correct "
                "`engine.dbos`",
            )
        return TransientError(f"{where} cannot be used", code="WFL123", why=_why(error))


def _url(place: PostgresAddress, password: SecretValue | None) -> sa.URL:
    # As parts: no text that could be logged has the password.
    query = dict(place.parameters)
    if place.host.startswith("/"):
        query["host"] = place.host
    return sa.URL.create(
        "postgresql+psycopg",
        username=place.user or None,
        password=None if password is None else password.text(),
        host=None if place.host.startswith("/") else place.host or None,
        port=int(place.port) if place.port else None,
        database=place.database,
        query=query,
    )


def _close(client: DBOSClient, engine: sa.Engine | None) -> None:
    client.destroy()
    if engine is not None:
        engine.dispose()


def _why(error: Exception) -> str:
    """The reason alone: the text of an error of SQLAlchemy has the statement and its values."""
    reason = getattr(error, "orig", None) or error
    return one_line(str(reason))[:_MOST_MESSAGE]


def _state(status: WorkflowStatus) -> RunState:
    state = _STATES.get(status.status, RunState.RUNNING)
    deadline, ended = status.workflow_deadline_epoch_ms, status.completed_at or status.updated_at
    if state is RunState.CANCELLED and deadline is not None and ended is not None and ended >= deadline:
        return RunState.TIMED_OUT
    return state


def _message(error: object) -> str:
    """The message of a run that has failed. Text means that it could not be read."""
    if error is None or isinstance(error, str):
        return "its error is not stored as JSON"
    return str(error)


def _refuse_pickles() -> None:
    """Have the library read nothing pickled for Lehr: loading it would run code of its author."""
    current: Any = vars(_serialization)["pickle"]
    if getattr(current, "refuses", False):
        return

    def loads(data: bytes) -> Any:
        if _ours.get():
            raise ValueError("pickled data is not read")
        return current.loads(data)

    guarded = types.SimpleNamespace(loads=loads, dumps=current.dumps, refuses=True)
    setattr(_serialization, "pickle", guarded)  # noqa: B010 - modules have no such field for the type checker
