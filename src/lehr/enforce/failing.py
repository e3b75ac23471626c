"""What plugins and checks fail with, kept from spreading."""

from __future__ import annotations

import asyncio


def raise_if_ours() -> None:
    """Pass a cancellation on, unless the code that was called made it up."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def brief(error: BaseException) -> str:
    """`error` on one line, for people."""
    text = str(error).partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
