"""Temporal, through its client library.

All runs of an asset have one workflow id, of which the server runs one at a time. The memo of a run has the
push that started it.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterator
from typing import Any

import temporalio.api.enums.v1 as enums
from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import (
    Client,
    RetryConfig,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowHistoryEventFilterType,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import AssetKey
from lehr.plugins.workflow.addresses import Temporal
from lehr.plugins.workflow.engines import (
    MOST_STEPS,
    REQUEST_SECONDS,
    BusyError,
    Order,
    Run,
    RunProgress,
    RunState,
    UnansweredError,
    id_of,
)
from lehr.sdk.secrets import SecretValue

_MEMO = "lehr"
_MOST_EVENTS = 2000
_MOST_CAUSES = 10

_STATES = {
    WorkflowExecutionStatus.COMPLETED: RunState.COMPLETED,
    WorkflowExecutionStatus.FAILED: RunState.FAILED,
    WorkflowExecutionStatus.CANCELED: RunState.CANCELLED,
    WorkflowExecutionStatus.TERMINATED: RunState.TERMINATED,
    WorkflowExecutionStatus.TIMED_OUT: RunState.TIMED_OUT,
}
"""All others have not ended."""

_REFUSED = {
    RPCStatusCode.INVALID_ARGUMENT,
    RPCStatusCode.UNAUTHENTICATED,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.UNIMPLEMENTED,
}


class TemporalEngine:
    """`lehr.plugins.workflow.engines.Engine` over a Temporal server. Belongs to one event loop.

    Args:
        api_key: sent with each request; None for none.
    """

    def __init__(
        self, address: Temporal, api_key: SecretValue | None, *, seconds: float = REQUEST_SECONDS
    ) -> None:
        self._address = address
        self._api_key = api_key
        self._timeout = dt.timedelta(seconds=seconds / 2)
        self._retries = RetryConfig(max_elapsed_time_millis=int(500 * seconds), max_retries=3)
        self._connected: Client | None = None

    async def start(self, order: Order) -> None:
        client = await self._client()
        try:
            await client.start_workflow(
                order.workflow,
                order.argument,
                id=id_of(order.asset),
                task_queue=self._address.task_queue,
                execution_timeout=dt.timedelta(seconds=order.seconds),
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                memo={_MEMO: {"operation": order.operation, "work": order.work}},
                rpc_timeout=self._timeout,
            )
        except WorkflowAlreadyStartedError:
            raise BusyError(f"{id_of(order.asset)} has a run that has not ended", code="WFL113") from None
        except RPCError as error:
            if error.status in _REFUSED or _is_missing(error):
                raise self._error(error) from None
            raise UnansweredError(
                f"it is not known whether {order.workflow} was started", code="WFL114", why=error.message
            ) from None
        except RuntimeError as error:
            raise self._unreachable(error) from None

    async def find(self, asset: AssetKey) -> Run | None:
        found = await self._described(id_of(asset), "")
        if found is None:
            return None
        status = found.status
        state = RunState.RUNNING if status is None else _STATES.get(status, RunState.RUNNING)
        started_by = await _memo(found)
        message, final = await self._failure(found) if state is RunState.FAILED else ("", False)
        return Run(
            found.id,
            state,
            found.run_id,
            str(started_by.get("operation", "")),
            str(started_by.get("work", "")),
            message,
            final,
        )

    async def progress(self, run: Run) -> RunProgress:
        found = await self._described(run.id, run.part)
        if found is None or found.history_length > _MOST_EVENTS:
            return RunProgress()
        events: list[HistoryEvent] = []
        try:
            async for event in (await self._handle(run.id, run.part)).fetch_history_events(
                rpc_timeout=self._timeout
            ):
                events.append(event)  # noqa: PERF401 - an asynchronous iterator
        except RPCError as error:
            raise self._error(error) from None
        now = "" if not run.running else _pending(found) or _waiting(events, self._address.task_queue)
        return RunProgress(tuple(_steps(events))[:MOST_STEPS], now)

    async def cancel(self, run: Run, signal: str) -> None:
        handle = await self._handle(run.id, run.part)
        try:
            if signal:
                await handle.signal(signal, rpc_timeout=self._timeout)
            else:
                await handle.cancel(rpc_timeout=self._timeout)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND or _is_missing(error):
                raise self._error(error) from None  # otherwise it has just ended
        except RuntimeError as error:
            raise self._unreachable(error) from None

    async def close(self) -> None:
        self._connected = None  # the library closes connections that nothing uses

    async def _client(self) -> Client:
        if self._connected is None:
            self._connected = await Client.connect(
                self._address.address,
                namespace=self._address.namespace,
                api_key=None if self._api_key is None else self._api_key.text(),
                tls=self._address.tls,
                retry_config=self._retries,
                identity="lehr",
                lazy=True,
                runtime=_runtime(),
            )
        return self._connected

    async def _handle(self, id: str, part: str) -> WorkflowHandle[Any, Any]:
        return (await self._client()).get_workflow_handle(id, run_id=part or None)

    async def _described(self, id: str, part: str) -> WorkflowExecutionDescription | None:
        handle = await self._handle(id, part)
        try:
            return await handle.describe(rpc_timeout=self._timeout)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND and not _is_missing(error):
                return None
            raise self._error(error) from None
        except RuntimeError as error:
            raise self._unreachable(error) from None

    async def _failure(self, found: WorkflowExecutionDescription) -> tuple[str, bool]:
        """The message of a run that has failed, and whether it is final."""
        handle = await self._handle(found.id, found.run_id)
        closing = WorkflowHistoryEventFilterType.CLOSE_EVENT
        try:
            async for event in handle.fetch_history_events(
                event_filter_type=closing, rpc_timeout=self._timeout
            ):
                failure = event.workflow_execution_failed_event_attributes.failure
                causes = tuple(_causes(failure))
                final = any(cause.application_failure_info.non_retryable for cause in causes)
                return _message(failure), final
        except RPCError as error:
            raise self._error(error) from None
        return "", False

    def _error(self, error: RPCError) -> LehrError:
        what = f"Temporal at {self._address.address} refuses a request"
        if error.status in (RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED):
            fix = "correct `api_key`, or give its owner the permission"
            return StalledError(what, code="WFL115", why=error.message, fix=fix)
        if error.status in _REFUSED or _is_missing(error):
            fix = "correct `engine.temporal`, or create the namespace"
            return StalledError(what, code="WFL116", why=error.message, fix=fix)
        return TransientError(
            f"Temporal at {self._address.address} does not answer", code="WFL117", why=error.message
        )

    def _unreachable(self, error: RuntimeError) -> LehrError:
        return TransientError(
            f"Temporal at {self._address.address} cannot be reached", code="WFL118", why=str(error)[:300]
        )


@functools.cache
def _runtime() -> Runtime:
    """The threads of the library. By default it would write log lines of its own to standard error."""
    return Runtime(telemetry=TelemetryConfig(logging=None))


def _is_missing(error: RPCError) -> bool:
    """Whether the namespace does not exist: the status is that of a workflow that does not."""
    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in error.grpc_status.details)


async def _memo(found: WorkflowExecutionDescription) -> dict[str, Any]:
    try:
        value = (await found.memo()).get(_MEMO)
    except Exception:  # the converter of another program has encoded it: no push of Lehr has started the run
        return {}
    return value if isinstance(value, dict) else {}


def _causes(failure: Failure) -> Iterator[Failure]:
    for _ in range(_MOST_CAUSES):
        yield failure
        if not failure.HasField("cause"):
            return
        failure = failure.cause


def _message(failure: Failure) -> str:
    return ": ".join(cause.message for cause in _causes(failure) if cause.message)


def _pending(found: WorkflowExecutionDescription) -> str:
    """The activities that a run waits for; empty if none is known."""
    raw = found.raw_description
    parts = []
    for activity in raw.pending_activities:
        name, failed = activity.activity_type.name, activity.last_failure
        again = f", attempt {activity.attempt}" if activity.attempt > 1 else ""
        parts.append(f"{name}{again}: {_message(failed)}" if failed.message else f"{name}{again}")
    parts += [child.workflow_type_name for child in raw.pending_children]
    return ", ".join(parts[:5])


def _waiting(events: list[HistoryEvent], task_queue: str) -> str:
    """Why the code of a workflow is not run; empty if it is."""
    kinds = [event.event_type for event in events]
    if enums.EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED not in kinds:
        return f"waits for a worker on task queue {task_queue}"
    failed = enums.EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    if failed in kinds[-3:]:
        [*_, last] = [event for event in events if event.event_type == failed]
        return f"its code failed: {_message(last.workflow_task_failed_event_attributes.failure)}"
    return ""


def _steps(events: list[HistoryEvent]) -> Iterator[str]:
    """Activities and child workflows that have ended."""
    names: dict[int, str] = {}
    for event in events:
        kind = event.WhichOneof("attributes")
        attributes: Any = None if kind is None else getattr(event, kind)
        if kind == "activity_task_scheduled_event_attributes":
            names[event.event_id] = attributes.activity_type.name
        elif kind in ("activity_task_completed_event_attributes", "activity_task_canceled_event_attributes"):
            yield f"{names.get(attributes.scheduled_event_id, 'a step')} has ended"
        elif kind in ("activity_task_failed_event_attributes", "activity_task_timed_out_event_attributes"):
            name = names.get(attributes.scheduled_event_id, "a step")
            yield f"{name} failed: {_message(attributes.failure)}"
        elif kind == "child_workflow_execution_completed_event_attributes":
            yield f"{attributes.workflow_type.name} has ended"
        elif kind == "child_workflow_execution_failed_event_attributes":
            yield f"{attributes.workflow_type.name} failed: {_message(attributes.failure)}"
