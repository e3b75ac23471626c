"""Durations in the configuration of checks: seconds, or text such as `10m`."""

from __future__ import annotations

import re

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+[smhd])+")


def seconds_in(name: str, value: float | str) -> float:
    """The duration `value` of the field `name`, in seconds.

    Raises:
        ValueError: it cannot be parsed, or is not positive.
    """
    seconds = float(value) if isinstance(value, int | float) else _parsed(name, value)
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{name} must be positive, not {value!r}")
    return seconds


def _parsed(name: str, text: str) -> float:
    if not _DURATION.fullmatch(text):
        raise ValueError(
            f"{name} {text!r} is not a valid duration: write seconds, or text such as 30s, 10m, 1h30m or 1d"
        )
    return float(sum(int(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"\d+[smhd]", text)))


def shown(value: float | str) -> str:
    """A duration as it was written."""
    return value if isinstance(value, str) else f"{value:g}s"
