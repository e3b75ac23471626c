"""What the plugin returned for Lehr to keep: a handle, and outputs."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from lehr.base.digest import canonical
from lehr.enforce.state import State
from lehr.enforce.step.parts import turn_of, type_of
from lehr.model.handle import Handle
from lehr.model.outputs import Outputs
from lehr.model.writes import KeepHandle, KeepOutputs


def keep_handle(state: State, text: str | UnsetType) -> tuple[State, tuple[KeepHandle, ...]]:
    """The state with the handle that the plugin returned, if it did, and the write that keeps it."""
    known = state.handle
    if text is UNSET:
        if known is None or not known.lost or known.type != type_of(state):
            return state, ()
        text = known.text  # what was lost has been looked for
    return with_handle(state, text)


def with_handle(state: State, text: str, lost: str = "") -> tuple[State, tuple[KeepHandle, ...]]:
    """The state with this handle, and the write that keeps it; none if it is the same."""
    view, known = turn_of(state).view, state.handle
    handle = Handle(view.key.partition, view.key.id, type_of(state), text, view.now, lost)
    if known is not None and (known.type, known.text) == (handle.type, text):
        handle = replace(handle, at=known.at)
    if handle == known or (known is None and not handle):
        return state, ()
    return replace(state, handle=handle if handle else None), (KeepHandle(handle),)


def keep_outputs(state: State, values: dict[str, Any] | UnsetType) -> tuple[State, tuple[KeepOutputs, ...]]:
    """The state with the outputs that the plugin returned, if it did, and the write that keeps them."""
    known = state.outputs
    if values is UNSET or (known is None and not values):
        return state, ()
    view, type = turn_of(state).view, type_of(state)
    if known is not None and known.type == type and canonical(known.values) == canonical(values):
        return state, ()
    outputs = Outputs(view.key.partition, view.key.id, type, values, view.now)
    return replace(state, outputs=outputs if values else None), (KeepOutputs(outputs),)
