"""Errors of plugins and checks, contained; and why a loop that should run forever has ended."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import msgspec

from lehr.base.errors import LehrError
from lehr.base.text import described, writable

T = TypeVar("T")

FAILURES = (Exception, SystemExit, GeneratorExit, BaseExceptionGroup)
"""Exceptions of a plugin or check that do not end this process."""

_MOST_BYTES = 1_000_000
_FEW_BYTES = 8_000


def reraise_if_cancelled() -> None:
    """Raise CancelledError again if this task is being cancelled, and not the called code on its own."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def one_line(error: BaseException) -> str:
    """`error` on one line, for messages."""
    text = writable(described(error).partition("\n")[0], 200)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def storable(value: T, kind: type[T]) -> T:
    """`value`, a plugin's or check's answer, so that it can be written down and read again.

    Texts are made writable: odd output of production must not prevent its repair.

    Raises:
        ValueError: its content cannot be written down.
    """
    try:
        encoded = _encoded(value)
        if encoded is None or b"\\u0000" in encoded or len(encoded) > _FEW_BYTES:
            value = msgspec.convert(_repaired(msgspec.to_builtins(value)), kind)
            encoded = msgspec.json.encode(value)
        written = msgspec.json.decode(encoded, type=kind)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise ValueError(one_line(error)) from error
    if len(encoded) > _MOST_BYTES:
        raise ValueError(f"it has {len(encoded):,} bytes, more than {_MOST_BYTES:,}")
    return value if written == value else written  # an invalid number becomes null


def _encoded(value: object) -> bytes | None:
    """None if there is text in it that cannot be encoded."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return None


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_repaired(item) for item in value]
    return value


def defect_of(
    task: asyncio.Task[None], expected: type[LehrError], *, may_end: bool = False
) -> BaseException | None:
    """The error with which the process must end, now that `task` has ended. None if the end was intended.

    The loop has handled the errors it could foresee. So an error that means "try again" to others
    ends the process like any other defect, under the name of the loop.

    Args:
        expected: errors that are reported unchanged: with them, a loop ends the process on purpose.
        may_end: for a task that has one thing to do, and fails only by a defect.
    """
    name = task.get_name()
    if task.cancelled():
        return RuntimeError(f"the loop `{name}` was cancelled")
    error = task.exception()
    if error is None:
        return None if may_end else RuntimeError(f"the loop `{name}` has ended")
    if isinstance(error, LehrError) and not isinstance(error, expected):
        defect = RuntimeError(f"the loop `{name}` has ended: {error}")
        defect.__cause__ = error
        return defect
    return error
