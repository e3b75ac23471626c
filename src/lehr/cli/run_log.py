"""The log of long-running commands: events with fields, on stderr."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys

from lehr.base.log import Log, configure_later, configure_now


class _Stderr:
    """The current stderr, which a progress bar may replace."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):  # a full disk must not end a loop
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


class _StructlogHandler(logging.Handler):
    """Log lines of libraries, including asyncio, as lines of our log."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event = record.getMessage()
        except Exception:
            event = str(record.msg)
        first, _, rest = event.partition("\n")
        fields = {"details": rest} if rest else {}
        Log().log(record.levelno, first, logger=record.name, exc_info=record.exc_info or None, **fields)


def configure_logs(*, verbose: bool, as_json: bool) -> None:
    """Log warnings and errors, or with `verbose` everything, one line each."""
    level = logging.INFO if verbose else logging.WARNING
    configure_later(functools.partial(_configure_structlog, level, as_json=as_json))
    if "structlog" in sys.modules:
        configure_now()
    logging.captureWarnings(True)
    logging.basicConfig(handlers=[_StructlogHandler()], level=level, force=True)


def _configure_structlog(level: int, *, as_json: bool) -> None:
    import structlog

    show: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    processors: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if as_json:
        processors.append(structlog.processors.format_exc_info)
    structlog.configure(
        processors=[*processors, show],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(_Stderr()),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )
