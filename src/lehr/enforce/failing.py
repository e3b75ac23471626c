"""Errors of plugins and checks, contained."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import msgspec

from lehr.base.text import described, writable

T = TypeVar("T")

FAILURES = (Exception, SystemExit, GeneratorExit, BaseExceptionGroup)
"""What a plugin or check may raise without ending this process."""

_MOST_BYTES = 1_000_000
_FEW_BYTES = 8_000


def raise_if_ours() -> None:
    """Pass a cancellation on, unless the code that was called made it up."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def brief(error: BaseException) -> str:
    """`error` on one line, for people."""
    text = writable(described(error).partition("\n")[0], 200)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def storable(value: T, kind: type[T]) -> T:
    """`value`, a plugin's or check's answer, so that it can be written down and read again.

    Texts are made writable; output of production must not keep it from being healed.

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
        raise ValueError(brief(error)) from error
    if len(encoded) > _MOST_BYTES:
        raise ValueError(f"it has {len(encoded):,} bytes, more than {_MOST_BYTES:,}")
    return value if written == value else written  # of an invalid number, nothing is left


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
