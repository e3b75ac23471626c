"""Answers of resources, with attributes instead of keys. Pure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def attributes(answer: Any) -> Any:
    """An answer whose objects have their fields as attributes; `vars` has those of a mapping."""
    if isinstance(answer, dict):
        return SimpleNamespace(**{name: attributes(value) for name, value in answer.items()})
    if isinstance(answer, list):
        return [attributes(item) for item in answer]
    return answer
