"""Plain values that simulated production holds: how they differ, break off half-way, and are shown."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.model.diff import Change


def compare(intended: Any, observed: Any, path: str = "") -> list[Change]:
    """How two plain values differ, leaf by leaf."""
    if isinstance(intended, dict) and isinstance(observed, dict):
        keys = sorted(intended.keys() | observed.keys())
        pairs = ((f"{path}/{key}", intended.get(key), observed.get(key)) for key in keys)
        return [change for place, one, other in pairs for change in compare(one, other, place)]
    return [] if intended == observed else [Change(path.removeprefix("/") or "value", intended, observed)]


def half(value: Any, before: Any) -> Any:
    """The value when a change from `before` to `value` broke off in the middle."""
    if isinstance(value, dict) and isinstance(before, dict) and len(value) > 1:
        new = sorted(value)[: len(value) // 2]
        return {**before, **{key: value[key] for key in new}}
    return f"half of {value}" if value is not None else before


def on_one_line(value: Any) -> str:
    """A value of production on one line."""
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


def shortened(value: Any) -> str:
    """A value of production on one line, of limited length."""
    text = on_one_line(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
