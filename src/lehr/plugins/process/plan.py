"""Differences, and the order in which they are fixed. Pure.

The order: missing replicas start first, in ascending order, since that gains capacity and tries new content
before any serving replica is touched; then unhealthy replicas, and those that are not ready; then reloads,
then old content one by one; superfluous replicas are removed last, highest index first. A step whose ports
are still held by a replica whose turn has not come waits for that replica.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

from lehr.base.digest import short
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, Goal, bounded
from lehr.plugins.process.observation import Health, Observation, Program, State
from lehr.plugins.process.render import Replica

LOOK_AGAIN = 0.5
"""Seconds after which restarting replicas are checked again."""


_LOADED = "/loaded"
_READINESS = "/readiness"


class Action(enum.StrEnum):
    """The action of a step on one replica."""

    START = "start"
    REPAIR = "repair"
    AWAIT = "await"
    RELOAD = "reload"
    ROLL = "roll"
    STOP = "stop"
    REMOVE = "remove"


class ReplicaStep(msgspec.Struct, frozen=True):
    """One replica's turn.

    Attributes:
        evict: other replicas that must be stopped, because ports are exchanged in a cycle.
    """

    action: Action
    index: int
    evict: tuple[int, ...] = ()


def differences(
    intended: Sequence[Replica],
    observation: Observation,
    health: Mapping[int, Health],
    goal: Goal,
    notes: tuple[str, ...] = (),
) -> Diff:
    """The diff that the plugin reports.

    Args:
        intended: all replicas; ignored unless `goal` is PRESENT.
        observation: the observed state.
        health: of replicas that run with the right content; those not listed are healthy.
        goal: PRESENT, FENCED or ABSENT.
        notes: messages for people.
    """
    if goal is not Goal.PRESENT:
        return _withdrawn(observation, goal)
    changes: list[Change] = []
    for replica in intended:
        changes += _replica_changes(replica, observation, health.get(replica.index, Health.HEALTHY))
    for index in observation.indices():
        if index >= len(intended):
            changes.append(Change(f"replicas/{index}", None, _state_text(observation, index)))
    if not changes:
        return Diff(notes=notes) if notes else NO_DIFF
    recovering = recovers(intended, observation, health)
    serving = {index for index in observation.indices() if _serves(observation, index)}
    down = {index for index, word in health.items() if word is not Health.HEALTHY}
    restarted = [change for change in changes if not change.path.endswith(_LOADED)]
    touched = {replica.index for replica in intended if _touched(replica, restarted)} & serving
    return Diff(
        bounded(changes, "replicas"),
        Effects(
            capacity=len(intended) - len(serving - down),
            version_from=_version_from(observation, touched) if touched - down else None,
            version_to=(intended[0].version or None) if intended else None,
            disruptive=bool(touched) and len(serving) == 1 and not recovering,
        ),
        look_again=LOOK_AGAIN if recovering else None,
        notes=notes,
    )


def only_unready(found: Diff) -> bool:
    """True if nothing differs but replicas that are not ready, which no push can change."""
    return all(change.path.endswith(_READINESS) for change in found.changes)


def recovers(intended: Sequence[Replica], observation: Observation, health: Mapping[int, Health]) -> bool:
    """True if all replicas that differ become as intended without a push. Arguments as above.

    Supervisord has restarted them or is about to, and a push would restart each crashed replica twice; or
    they are not ready.
    """
    if any(index >= len(intended) for index in observation.indices()):
        return False
    return all(
        _returns(replica, observation, health.get(replica.index, Health.HEALTHY)) for replica in intended
    )


def _returns(replica: Replica, observation: Observation, health: Health) -> bool:
    """True if the replica is as intended, or becomes so without a push."""
    changes = _replica_changes(replica, observation, health)
    if not changes or changes[0].path.endswith(_READINESS):
        return True
    programs = observation.at(replica.index)
    home = _home(replica, observation)
    if home is None or len(programs) > 1 or home.content != replica.content:
        return False
    if home.live:
        again = bool(home.restarts) or home.launching
        return again and health is Health.STARTING and changes[0].path.endswith("/health")
    former = (item for item in observation.left_behind if item.index == replica.index)
    return home.returning and all(item.process.start >= home.since for item in former)


def steps(
    intended: Sequence[Replica], observation: Observation, health: Mapping[int, Health], goal: Goal
) -> list[ReplicaStep]:
    """The steps that make `differences` empty, in order. Same arguments."""
    descending = sorted(observation.indices(), reverse=True)
    if goal is Goal.ABSENT:
        return [ReplicaStep(Action.REMOVE, index) for index in descending]
    if goal is Goal.FENCED:
        return [ReplicaStep(Action.STOP, index) for index in descending if _serves_or_may(observation, index)]
    by_action: dict[Action, list[int]] = {action: [] for action in Action}
    for replica in intended:
        action = _action(replica, observation, health.get(replica.index, Health.HEALTHY))
        if action is not None:
            by_action[action].append(replica.index)
    by_action[Action.REMOVE] = [index for index in descending if index >= len(intended)]
    order = (Action.START, Action.REPAIR, Action.AWAIT, Action.RELOAD, Action.ROLL, Action.REMOVE)
    pending = [ReplicaStep(action, index) for action in order for index in by_action[action]]
    return _in_port_order(pending, intended, observation)


def batches(ordered: Sequence[ReplicaStep], most: int = 8) -> list[list[ReplicaStep]]:
    """The steps in groups that may run together.

    Only starts may, since they remove nothing; and the first one runs alone, so that broken content stops
    there.
    """
    grouped: list[list[ReplicaStep]] = []
    for step in ordered:
        alone = step.action is not Action.START or step.evict
        last = grouped[-1] if len(grouped) > 1 else []
        if alone or not last or last[0].action is not Action.START or last[0].evict or len(last) == most:
            grouped.append([step])
        else:
            last.append(step)
    return grouped


def _in_port_order(
    pending: list[ReplicaStep], intended: Sequence[Replica], observation: Observation
) -> list[ReplicaStep]:
    held = {index: _held_ports(observation, index) for index in observation.indices()}
    wanted = {replica.index: frozenset(replica.ports) for replica in intended}
    ordered: list[ReplicaStep] = []

    def in_the_way(step: ReplicaStep) -> tuple[int, ...]:
        ports = wanted.get(step.index, frozenset())
        return tuple(index for index, other in held.items() if index != step.index and other & ports)

    while pending:
        step = next((item for item in pending if not in_the_way(item)), pending[0])
        pending.remove(step)
        evicted = in_the_way(step)
        for index in evicted:
            held[index] = frozenset()
        held[step.index] = wanted.get(step.index, frozenset())
        ordered.append(ReplicaStep(step.action, step.index, evicted))
    return ordered


def _replica_changes(replica: Replica, observation: Observation, health: Health) -> list[Change]:
    path = f"replicas/{replica.index}"
    elsewhere = [item.group for item in observation.at(replica.index) if item.group != replica.group]
    home = _home(replica, observation)
    if elsewhere and _serves(observation, replica.index):
        return [Change(f"{path}/group", replica.group, ", ".join(elsewhere))]
    if home is None or not home.live:
        return [Change(path, "running", _state_text(observation, replica.index))]
    if home.content != replica.content:
        return [Change(f"{path}/content", short(replica.content), short(home.content) or "unknown")]
    if replica.restart and home.restart != replica.restart:
        return [Change(f"{path}/process", f"started by restart {replica.restart}", "started before")]
    if any(item.index == replica.index for item in observation.left_behind):
        return [Change(f"{path}/former", None, "running")]
    if home.loaded != replica.loaded:  # before health, which what it loads may restore
        return [Change(f"{path}{_LOADED}", short(replica.loaded) or None, short(home.loaded) or None)]
    if health is Health.NOT_READY:
        return [Change(f"{path}{_READINESS}", "ready", str(health))]
    if health is not Health.HEALTHY:
        return [Change(f"{path}/health", "healthy", str(health))]
    return []


def _action(replica: Replica, observation: Observation, health: Health) -> Action | None:
    changes = _replica_changes(replica, observation, health)
    if not changes:
        return None
    if not _serves(observation, replica.index):
        return Action.START
    actions = {_LOADED: Action.RELOAD, "/health": Action.REPAIR, _READINESS: Action.AWAIT}
    found = (action for ending, action in actions.items() if changes[0].path.endswith(ending))
    return next(found, Action.ROLL)


def _home(replica: Replica, observation: Observation) -> Program | None:
    return next((item for item in observation.at(replica.index) if item.group == replica.group), None)


def _withdrawn(observation: Observation, goal: Goal) -> Diff:
    wanted = "stopped" if goal is Goal.FENCED else None
    changes = [
        Change(f"replicas/{index}", wanted, _state_text(observation, index))
        for index in observation.indices()
        if goal is Goal.ABSENT or _serves_or_may(observation, index)
    ]
    serving = sum(_serves(observation, index) for index in observation.indices())
    effects = Effects(capacity=-serving, disruptive=serving > 0)
    return Diff(bounded(changes, "replicas"), effects) if changes else NO_DIFF


def _serves(observation: Observation, index: int) -> bool:
    """True if a process of the replica may be answering now."""
    left = any(item.index == index for item in observation.left_behind)
    return left or any(program.live for program in observation.at(index))


def _serves_or_may(observation: Observation, index: int) -> bool:
    """Also true while supervisord would restart it."""
    quiet = (State.STOPPED, State.FATAL, State.ABSENT)
    return _serves(observation, index) or any(item.state not in quiet for item in observation.at(index))


def _state_text(observation: Observation, index: int) -> str | None:
    programs = observation.at(index)
    live = [program for program in programs if program.live]
    if live:
        return "running"
    if any(item.index == index for item in observation.left_behind):
        return "running without supervisord"
    states = [program.state for program in programs if program.state is not State.ABSENT]
    if states:
        return str(states[0])
    return "defined" if programs else None


def _touched(replica: Replica, changes: Sequence[Change]) -> bool:
    path = f"replicas/{replica.index}"
    return any(change.path == path or change.path.startswith(f"{path}/") for change in changes)


def _version_from(observation: Observation, touched: set[int]) -> str | None:
    first = min(touched)
    versions = [program.version for program in observation.at(first) if program.live]
    versions += [item.version for item in observation.left_behind if item.index == first]
    return next(filter(None, versions), None)


def _held_ports(observation: Observation, index: int) -> frozenset[int]:
    ports: set[int] = set()
    for program in observation.at(index):
        ports.update(program.ports)
    for item in observation.left_behind:
        if item.index == index:
            ports.update(item.ports)
    return frozenset(ports)
