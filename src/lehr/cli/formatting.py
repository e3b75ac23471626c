"""Times, durations and counts as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from lehr.base import moments
from lehr.base.clock import SystemClock, iso
from lehr.base.moments import span

__all__ = [
    "age",
    "ago",
    "counted",
    "duration",
    "first_of",
    "moment",
    "past_moment",
    "seconds_of",
    "span",
    "when",
]

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def age(then: float | None, now: float) -> str:
    """Time since `then`: `3m`; `-` for never."""
    return "-" if then is None else span(now - then) if now - then >= 1 else "now"


def ago(then: float, now: float) -> str:
    """`3m ago`, `just now`."""
    return "just now" if now - then < 1 else f"{span(now - then)} ago"


def when(then: float, now: float) -> str:
    """A future time: `in 3m (2026-01-02T03:04:05Z)`, `now`."""
    return "now" if then <= now + 0.5 else f"in {span(then - now)} ({iso(then)})"


def moment(then: float | None) -> str | None:
    """ISO 8601 in UTC; None for none."""
    return None if then is None else iso(then)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 asset`, `1,200 assets`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def first_of(items: Sequence[str], most: int, separator: str = "; ") -> str:
    """The first items; `one; two; and 3 more`."""
    more = [f"and {len(items) - most} more"] if len(items) > most else []
    return separator.join([*items[:most], *more])


def duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Callback of options that take a duration: seconds; None if the option is not given."""
    if value is None:
        return None
    seconds = seconds_of(value)
    if seconds is None:
        raise click.BadParameter(f"{value!r} is not a valid duration; write 90s, 1h30m or 2d", ctx, param)
    return seconds


def past_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Callback of options that take a time, or a duration ago: wall-clock seconds; None if not given."""
    if value is None:
        return None
    seconds = seconds_of(value)
    if seconds is not None:
        return SystemClock().now() - seconds
    try:
        return moments.seconds_of(value)
    except (ValueError, OverflowError):
        what = f"{value!r} is not valid; write a duration such as 10m, or a time such as 2026-01-31T12:00Z"
        raise click.BadParameter(what, ctx, param) from None


def seconds_of(text: str) -> float | None:
    """`text` in seconds; None if it is not a valid duration."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not re.fullmatch(f"({_PART.pattern})+", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
