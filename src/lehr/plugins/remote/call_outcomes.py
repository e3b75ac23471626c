"""Outcomes of calls of plugins, for metrics."""

from __future__ import annotations

import asyncio
from typing import Any

from lehr.plugins.remote import messages as m
from lehr.plugins.remote.channel import LostError, SilentError

OK = "ok"
_NEEDS = frozenset({"need", "questions"})
_KINDS = {
    m.Trouble.KIND_TRANSIENT: "transient",
    m.Trouble.KIND_STALLED: "stalled",
    m.Trouble.KIND_WAITING: "waiting",
    m.Trouble.KIND_FENCED: "fenced",
}


def outcome_of_answer(answer: Any) -> str:
    """`ok`, `need` for a question of the plugin, or the kind of its trouble."""
    [*groups] = answer.DESCRIPTOR.oneofs
    found = answer.WhichOneof(groups[0].name) if groups else None
    if found in _NEEDS:
        return "need"
    has_trouble = "trouble" in answer.DESCRIPTOR.fields_by_name and answer.HasField("trouble")
    return _KINDS.get(answer.trouble.kind, "stalled") if has_trouble else OK


def outcome_of_error(error: BaseException) -> str:
    """`lost` if its connection has ended, `timeout`, `cancelled` by Lehr, or another `error`."""
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "cancelled"
    if isinstance(error, SilentError):
        return "timeout"
    return "lost" if isinstance(error, LostError) else "error"
