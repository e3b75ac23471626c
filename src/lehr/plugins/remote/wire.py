"""Values of Lehr as messages, and back. Pure.

Whatever comes from a plugin may be wrong: `GarbageError` names the problem, and nothing else is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET

from lehr.base.digest import canonical
from lehr.base.errors import FencedError, LehrError, StalledError, TransientError, WaitingError
from lehr.base.text import one_line
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.diff import Change, Diff, Effects, Goal, Target
from lehr.model.operation import Operation, Outcome, Progress, Result
from lehr.plugins.remote import messages as m
from lehr.sdk.plugin import Fencing, Found, Traits

Shown = Callable[[str], str]
"""A text of a plugin as it may be shown: without secrets."""

GOALS = {
    Goal.PRESENT: m.GOAL_PRESENT,
    Goal.DRAINED: m.GOAL_DRAINED,
    Goal.FENCED: m.GOAL_FENCED,
    Goal.ABSENT: m.GOAL_ABSENT,
}
_GOALS_BACK: dict[int, Goal] = {number: goal for goal, number in GOALS.items()}
FENCING = {
    Fencing.NONE: m.FENCING_NONE,
    Fencing.NATIVE: m.FENCING_NATIVE,
    Fencing.COMPARE_AND_SWAP: m.FENCING_COMPARE_AND_SWAP,
}
_FENCING_BACK: dict[int, Fencing] = {number: fencing for fencing, number in FENCING.items()}
RESULTS = {
    Result.DONE: m.Outcome.RESULT_DONE,
    Result.FAILED: m.Outcome.RESULT_FAILED,
    Result.STALLED: m.Outcome.RESULT_STALLED,
    Result.UNKNOWN: m.Outcome.RESULT_UNKNOWN,
}
_RESULTS_BACK: dict[int, Result] = {number: result for result, number in RESULTS.items()}
STATES = {Progress.RUNNING: m.StatusResponse.STATE_RUNNING, Progress.ENDED: m.StatusResponse.STATE_ENDED}


_MOST_AT_ONCE = 1000


class GarbageError(Exception):
    """A message that a plugin must not send."""


def target_message(target: Target) -> m.Target:
    """`target` as it is sent."""
    return m.Target(
        partition=target.partition,
        id=target.id,
        type=target.type,
        incarnation=target.incarnation,
        goal=GOALS[target.goal],
        handle=target.handle,
        lost=target.lost,
        restart=target.restart,
    )


def target_of(message: m.Target) -> Target:
    """The target in `message`."""
    return Target(
        Partition(message.partition),
        AssetId(message.id),
        message.type,
        message.incarnation,
        _goal(message.goal),
        message.handle,
        message.lost,
        message.restart,
    )


def operation_message(operation: Operation) -> m.Operation:
    """`operation` as it is sent."""
    return m.Operation(
        id=operation.id,
        epoch=operation.epoch,
        content_digest=str(operation.content_digest).encode(),
        diff_digest=str(operation.diff_digest).encode(),
        purpose=operation.purpose,
        partition=operation.partition,
        asset=operation.asset,
        type=operation.type,
        goal=GOALS[operation.goal],
        record=msgspec.json.encode(operation),
    )


def operation_of(message: m.Operation) -> Operation:
    """The operation in `message`."""
    try:
        return msgspec.json.decode(message.record, type=Operation)
    except msgspec.MsgspecError as error:
        _refuse(f"a record of an operation that cannot be read: {error}")


def difference_message(diff: Diff) -> m.Difference:
    """`diff` as it is sent."""
    message = m.Difference(
        changes=[
            m.Change(path=change.path, intended=_sent(change.intended), observed=_sent(change.observed))
            for change in diff.changes
        ],
        effects=m.Effects(
            capacity=diff.effects.capacity or 0,
            capacity_unknown=diff.effects.capacity is None,
            version_from=diff.effects.version_from,
            version_to=diff.effects.version_to,
            destructive=diff.effects.destructive,
            disruptive=diff.effects.disruptive,
        ),
        look_again=diff.look_again,
        notes=diff.notes,
    )
    if isinstance(diff.handle, str):
        message.handle = diff.handle
    if isinstance(diff.outputs, dict):
        message.outputs.SetInParent()
        for name, value in diff.outputs.items():
            message.outputs.values[name] = canonical(value)
    return message


def diff_of(message: m.Difference, shown: Shown) -> Diff:
    """The diff in `message`.

    Raises:
        GarbageError: it is not valid.
    """
    effects = message.effects
    return Diff(
        changes=tuple(_change(change, shown) for change in message.changes),
        effects=Effects(
            capacity=None if effects.capacity_unknown else effects.capacity,
            version_from=effects.version_from if effects.HasField("version_from") else None,
            version_to=effects.version_to if effects.HasField("version_to") else None,
            destructive=effects.destructive,
            disruptive=effects.disruptive,
        ),
        look_again=message.look_again if message.HasField("look_again") else None,
        notes=tuple(shown(one_line(note)) for note in message.notes),
        handle=message.handle if message.HasField("handle") else UNSET,
        outputs=_outputs(message.outputs.values) if message.HasField("outputs") else UNSET,
    )


def _change(message: m.Change, shown: Shown) -> Change:
    def value(content: bytes) -> Any:
        return _hidden(_decoded(content, f"a value of the change at {message.path!r}"), shown)

    if not message.path:
        _refuse("a change without a path")
    return Change(shown(message.path), value(message.intended), value(message.observed))


def _outputs(values: Mapping[str, bytes]) -> dict[str, Any]:
    return {name: _decoded(content, f"the output {name!r}") for name, content in values.items()}


def outcome_message(outcome: Outcome) -> m.Outcome:
    """`outcome` as it is sent."""
    message = m.Outcome(result=RESULTS[outcome.result], message=outcome.message, retry_at=outcome.retry_at)
    if isinstance(outcome.handle, str):
        message.handle = outcome.handle
    return message


def outcome_of(message: m.Outcome, shown: Shown) -> Outcome:
    """The outcome in `message`; a result that is not known is UNKNOWN."""
    return Outcome(
        _RESULTS_BACK.get(message.result, Result.UNKNOWN),
        shown(one_line(message.message)),
        message.retry_at if message.HasField("retry_at") else None,
        message.handle if message.HasField("handle") else UNSET,
    )


def trouble_message(error: LehrError) -> m.Trouble:
    """`error` as it is sent."""
    kind, until = m.Trouble.KIND_STALLED, 0.0
    if isinstance(error, WaitingError):
        kind, until = m.Trouble.KIND_WAITING, error.until
    elif isinstance(error, FencedError):
        kind = m.Trouble.KIND_FENCED
    elif isinstance(error, TransientError):
        kind = m.Trouble.KIND_TRANSIENT
    return m.Trouble(kind=kind, what=error.what, why=error.why, fix=error.fix, until=until, code=error.code)


def error_of(message: m.Trouble, shown: Shown) -> LehrError:
    """The error in `message`; an unknown kind is stalled."""
    what = shown(one_line(message.what)) or "the plugin has trouble that it does not name"
    why, fix = shown(one_line(message.why)), shown(one_line(message.fix))
    if message.kind == m.Trouble.KIND_WAITING:
        return WaitingError(what, until=message.until, code=message.code, why=why, fix=fix)
    if message.kind == m.Trouble.KIND_FENCED:
        why = why or "a newer control plane has pushed this asset; nothing was changed"
        return FencedError(what, code=message.code, why=why, fix=fix)
    if message.kind == m.Trouble.KIND_TRANSIENT:
        return TransientError(what, code=message.code, why=why, fix=fix)
    return StalledError(what, code=message.code, why=why, fix=fix)


def found_message(found: Found) -> m.Found:
    """`found` as it is sent."""
    return m.Found(
        id=found.id,
        type=found.type,
        payload=canonical(found.payload),
        notes=found.notes,
        obstacle=found.obstacle,
    )


def found_of(message: m.Found, shown: Shown = str) -> Found:
    """The draft in `message`.

    Raises:
        GarbageError: its payload is not a JSON object.
    """
    payload = _decoded(message.payload, f"the payload of the draft {message.id!r}")
    if not isinstance(payload, dict):
        _refuse(f"the payload of the draft {message.id!r} is not an object")
    notes = tuple(shown(one_line(note)) for note in message.notes)
    return Found(
        id=message.id,
        type=message.type,
        payload=_hidden(payload, shown),
        notes=notes,
        obstacle=shown(message.obstacle),
    )


def progress_of(message: m.StatusResponse) -> Progress:
    """The state in `message`; an unknown one may still change production."""
    return Progress.ENDED if message.state == m.StatusResponse.STATE_ENDED else Progress.RUNNING


def key_of(message: m.AssetKey) -> AssetKey:
    """The key in `message`."""
    return AssetKey(Partition(message.partition), AssetId(message.id))


def traits_message(traits: Traits) -> m.Traits:
    """`traits` as they are sent, written out."""
    return m.Traits(
        fencing=FENCING[traits.fencing],
        goals=[GOALS[goal] for goal in sorted(traits.goals)],
        turns=traits.turns,
        pushes=traits.pushes,
        diff_timeout=traits.diff_timeout,
        push_timeout=traits.push_timeout,
        resync=traits.resync,
        restarts=traits.restarts,
        providers=traits.providers,
    )


def traits_of(message: m.Traits) -> Traits:
    """The traits in `message`, with defaults for those that are 0, and for values that are not known."""
    usual = Traits()
    return Traits(
        fencing=_FENCING_BACK.get(message.fencing, usual.fencing),
        goals=frozenset(_goals(message.goals)),
        turns=min(message.turns, _MOST_AT_ONCE) or usual.turns,
        pushes=min(message.pushes, _MOST_AT_ONCE) or usual.pushes,
        diff_timeout=_seconds(message.diff_timeout, usual.diff_timeout),
        push_timeout=_seconds(message.push_timeout, usual.push_timeout),
        resync=_seconds(message.resync, usual.resync),
        restarts=message.restarts,
        providers=message.providers,
    )


def _goals(numbers: Iterable[int]) -> Iterable[Goal]:
    known = (_GOALS_BACK[number] for number in numbers if number in _GOALS_BACK)
    return (goal for goal in known if goal is not Goal.PRESENT)


def _seconds(given: float, usual: float) -> float:
    return given if 0 < given < 1e9 else usual


def _goal(number: int) -> Goal:
    if number not in _GOALS_BACK:
        _refuse(f"a goal that is not known: {number}")
    return _GOALS_BACK[number]


def _sent(value: Any) -> bytes:
    return b"" if value is None else canonical(value)


def _decoded(content: bytes, where: str) -> Any:
    if not content:
        return None
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse(f"{where} is not JSON: {error}")


def _hidden(value: Any, shown: Shown) -> Any:
    """`value` without secrets in its texts."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list):
        return [_hidden(item, shown) for item in value]
    if isinstance(value, dict):
        return {shown(name): _hidden(item, shown) for name, item in value.items()}
    return value


def _refuse(what: str) -> NoReturn:
    raise GarbageError(what)
