"""The log. structlog is imported with the first line: it takes a sixth of the start of `lehr plan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_waiting: list[Callable[[], None]] = []


def configure_later(configure: Callable[[], None]) -> None:
    """Call `configure` before structlog is used for the first time. The last caller decides."""
    _waiting[:] = [configure]


def configure_now() -> None:
    """Do what waits for the first line: from here on, others may use structlog directly."""
    while _waiting:
        _waiting.pop()()


class Log:
    """Logs events with fields, like a logger of structlog."""

    def __getattr__(self, method: str) -> Any:
        import structlog  # noqa: PLC0415

        configure_now()
        return getattr(structlog.get_logger(), method)
