"""Log lines while a rule is checked against a plugin."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, MutableMapping
from typing import Any

import structlog


@contextlib.contextmanager
def logged() -> Iterator[list[str]]:
    """Every line that is logged in this context, whatever the level, with structlog or without."""
    lines: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    def note(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        lines.append(str(event))
        raise structlog.DropEvent

    root, listener = logging.getLogger(), Listener()
    level = root.level
    processors = structlog.get_config()["processors"]
    usual = list(processors)
    # In place, as loggers that are bound already hold this very list.
    processors[:] = [structlog.processors.format_exc_info, note]
    wrapper = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET))
    root.addHandler(listener)
    root.setLevel(logging.NOTSET)
    try:
        yield lines
    finally:
        root.setLevel(level)
        root.removeHandler(listener)
        processors[:] = usual
        structlog.configure(wrapper_class=wrapper)
