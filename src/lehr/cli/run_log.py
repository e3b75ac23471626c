"""The log of long-running commands on stderr: one line for each event, as text or as JSON."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import sys
import textwrap
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Literal, TypeVar

import click

from lehr.base.clock import SystemClock, iso
from lehr.base.errors import LehrError
from lehr.base.log import Log, configure_later, configure_now
from lehr.cli.terminal import printable
from lehr.control.activity_log import Level, LogLine

Form = Literal["text", "json"]
C = TypeVar("C", bound=Callable[..., Any])

_LEVELS = frozenset(Level)

_form: list[Form] = []  # that of `configure_logs`, once it was called


def log_options(command: C) -> C:
    """The options `--log-format` and `--verbose`."""
    form = click.option(
        "--log-format",
        "log_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Format of the log on stderr.",
    )
    return form(
        click.option("-v", "--verbose", is_flag=True, help="Also log details, such as every turn.")(command)
    )


def as_json() -> bool:
    """Whether nothing but lines of JSON may be written to stderr."""
    return _form == ["json"]


def verbose() -> bool:
    """Whether details are logged."""
    return logging.getLogger().isEnabledFor(logging.INFO)


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


def configure_logs(form: Form | None = None, *, verbose: bool = False) -> None:
    """Log warnings and errors of all parts from now on, or with `verbose` everything.

    Args:
        form: also of what the command itself reports; None for one that a person waits for, whose reports
            are plain text.
    """
    _form[:] = [] if form is None else [form]
    level = logging.INFO if verbose else logging.WARNING
    configure_later(functools.partial(_configure_structlog, level))
    if "structlog" in sys.modules:
        configure_now()
    logging.captureWarnings(True)
    logging.basicConfig(handlers=[_StructlogHandler()], level=level, force=True)


def report(text: str, event: str = "run", level: Level = Level.INFO, **fields: Any) -> None:
    """Log what the command itself does; before `configure_logs`, as plain text."""
    if not _form:
        _Stderr().write(f"{text}\n" if level is Level.INFO else f"{level}: {text}\n")
        return
    first, _, rest = text.strip("\n").partition("\n")
    emit(LogLine(SystemClock().now(), level, event, first, {**fields, "details": rest} if rest else fields))


@contextlib.contextmanager
def errors_logged() -> Iterator[None]:
    """Logs an error that ends the command as JSON, if that is the form of its log.

    Raises:
        Exit: instead of the error.
    """
    try:
        yield
    except LehrError as error:
        if not as_json():
            raise
        report(error.what, "ended", Level.ERROR, code=error.code, why=error.why, fix=error.fix)
        raise click.exceptions.Exit(1) from error


def emit(line: LogLine) -> None:
    """Write a line. A closed terminal or a full disk is not fatal."""
    stderr = _Stderr()
    stderr.write(rendered(line, _form[0] if _form else "text") + "\n")
    stderr.flush()


def rendered(line: LogLine, form: Form) -> str:
    """A line as text, whose `details` follow it indented; or as one JSON object."""
    if form == "json":
        head = {"at": iso(line.at), "level": line.level, "event": line.event, "message": line.message}
        return json.dumps({**head, **line.fields, **head}, default=str)  # also of bytes that are not UTF-8
    text = f"{iso(line.at)} {line.level:<7} {printable(line.message)}"
    details = line.fields.get("details")
    return f"{text}\n{textwrap.indent(details.rstrip(), '  ')}" if details else text


def _configure_structlog(level: int) -> None:
    import structlog

    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.format_exc_info, _rendered],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(_Stderr()),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )


def _rendered(_logger: Any, _method: str, logged: MutableMapping[str, Any]) -> str:
    """A line that a part of the program logs."""
    message, level = str(logged.pop("event")), logged.pop("level")
    level = Level(level) if level in _LEVELS else Level.ERROR
    exception = logged.get("exception")
    if as_json():
        return rendered(LogLine(SystemClock().now(), level, "log", message, dict(logged)), "json")
    details = "\n".join(str(logged.pop(name)) for name in ("details", "exception") if name in logged)
    facts = ", ".join(f"{name}={value}" for name, value in logged.items())
    text = f"{message}: {facts}" if facts else message
    fields = {"details": details} if exception or details else {}
    return rendered(LogLine(SystemClock().now(), level, "log", text, fields), "text")
