"""What differs between replicas intended and observed, and the order in which that is put right."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.model.diff import Diff, Effects, Goal
from lehr.plugins.process.observation import Health, LeftBehind, Observation, Program, State
from lehr.plugins.process.payload import Process
from lehr.plugins.process.plan import Action, ReplicaStep, batches, differences, only_unready, steps
from lehr.plugins.process.procfs import ProcessId
from lehr.plugins.process.render import Replica, render


def replicas(count: int, base: int = 0, **fields: Any) -> list[Replica]:
    ports = [{"name": "web", "base": base}] if base else []
    document = {"command": ["serve"], "replicas": count, "ports": ports, **fields}
    return render(msgspec.convert(document, Process), "shop", "/", ())


def running(intended: list[Replica], **fields: Any) -> tuple[Program, ...]:
    return tuple(
        Program(
            **{
                "group": item.group,
                "index": item.index,
                "state": State.RUNNING,
                "pid": 100 + item.index,
                "content": item.content,
                "version": item.version,
                "ports": item.ports,
                **fields,
            }
        )
        for item in intended
    )


def diff(
    intended: list[Replica],
    programs: tuple[Program, ...],
    health: dict[int, Health] | None = None,
    goal: Goal = Goal.PRESENT,
) -> Diff:
    return differences(intended, Observation(programs), health or {}, goal)


def order(
    intended: list[Replica],
    programs: tuple[Program, ...],
    health: dict[int, Health] | None = None,
    goal: Goal = Goal.PRESENT,
) -> list[tuple[str, int]]:
    found = steps(intended, Observation(programs), health or {}, goal)
    return [(step.action.value, step.index) for step in found]


def changes(found: Diff) -> list[tuple[str, Any, Any]]:
    return [(item.path, item.intended, item.observed) for item in found.changes]


def test_what_runs_as_intended_does_not_differ() -> None:
    intended = replicas(3)
    assert diff(intended, running(intended)).empty
    assert order(intended, running(intended)) == []


def test_what_a_replica_reloads_is_reloaded_before_its_health_counts() -> None:
    intended = [msgspec.structs.replace(item, loaded="b") for item in replicas(2)]
    programs = running(intended, loaded="a")
    found = diff(intended, programs, {0: Health.UNHEALTHY})
    assert changes(found) == [("replicas/0/loaded", "b", "a"), ("replicas/1/loaded", "b", "a")]
    assert order(intended, programs, {0: Health.UNHEALTHY}) == [("reload", 0), ("reload", 1)]


def test_a_replica_that_is_not_ready_is_waited_for_and_never_restarted() -> None:
    intended = replicas(2)
    found = diff(intended, running(intended), {0: Health.NOT_READY})
    assert changes(found) == [("replicas/0/readiness", "ready", "not ready")]
    assert found.look_again is not None, "no push is asked for"
    assert found.effects.capacity == 1, "it serves nobody"
    assert not found.effects.disruptive
    assert only_unready(found)


def test_others_are_not_touched_before_a_replica_is_ready() -> None:
    intended = replicas(3, version="2")
    old = running(replicas(3, version="1"))
    programs = (running(intended)[0], *old[1:])
    health = {0: Health.NOT_READY}
    assert diff(intended, programs, health).look_again is None
    assert order(intended, programs, health) == [("await", 0), ("roll", 1), ("roll", 2)]


def test_a_reload_does_not_disrupt() -> None:
    intended = [msgspec.structs.replace(item, loaded="b") for item in replicas(1, version="2")]
    found = diff(intended, running(intended, loaded="a"))
    assert (found.effects.disruptive, found.effects.capacity, found.effects.version_from) == (False, 0, None)


def test_a_replica_of_old_content_is_rolled_and_so_loads_everything() -> None:
    intended = [msgspec.structs.replace(item, loaded="b") for item in replicas(1)]
    assert order(intended, running(intended, loaded="a", content="old")) == [("roll", 0)]


def test_a_replica_that_does_not_run_differs_by_its_state() -> None:
    intended = replicas(4)
    programs = (
        *running(intended[:1]),
        *running(intended[1:2], state=State.FATAL),
        *running(intended[2:3], state=State.BACKOFF),
    )
    found = diff(intended, programs)
    assert changes(found) == [
        ("replicas/1", "running", "fatal"),
        ("replicas/2", "running", "backoff"),
        ("replicas/3", "running", None),
    ]
    assert found.effects.capacity == 3
    assert order(intended, programs) == [("start", 1), ("start", 2), ("start", 3)]


def test_old_content_is_rolled_in_order_and_names_both_versions() -> None:
    old, new = replicas(2, version="1"), replicas(2, version="2")
    found = diff(new, running(old))
    assert [change.path for change in found.changes] == ["replicas/0/content", "replicas/1/content"]
    assert found.effects == Effects(capacity=0, version_from="1", version_to="2", disruptive=False)
    assert order(new, running(old)) == [("roll", 0), ("roll", 1)]


def test_rolling_the_only_replica_is_disruptive() -> None:
    assert diff(replicas(1, version="2"), running(replicas(1))).effects.disruptive


def test_growing_gains_and_shrinking_loses_capacity_from_the_highest_index() -> None:
    four, two = replicas(4), replicas(2)
    assert diff(four, running(two)).effects.capacity == 2
    found = diff(two, running(four))
    assert changes(found) == [("replicas/2", None, "running"), ("replicas/3", None, "running")]
    assert found.effects.capacity == -2
    assert order(two, running(four)) == [("remove", 3), ("remove", 2)]


def test_new_content_is_tried_on_what_is_missing_before_anything_that_serves_is_touched() -> None:
    old, new = replicas(2), replicas(3, version="2")
    assert order(new, running(old)) == [("start", 2), ("roll", 0), ("roll", 1)]


def test_nothing_superfluous_is_removed_before_the_rest_has_worked() -> None:
    old, new = replicas(3), replicas(1, version="2")
    assert order(new, running(old)) == [("roll", 0), ("remove", 2), ("remove", 1)]


def test_an_unhealthy_replica_differs_and_is_repaired() -> None:
    intended = replicas(2)
    health = {1: Health.UNHEALTHY}
    found = diff(intended, running(intended), health)
    assert changes(found) == [("replicas/1/health", "healthy", "unhealthy")]
    assert found.effects.capacity == 1
    assert order(intended, running(intended), health) == [("repair", 1)]


def test_ports_that_move_up_are_freed_from_the_top() -> None:
    old, new = replicas(3, base=8000), replicas(3, base=8001)
    assert order(new, running(old)) == [("roll", 2), ("roll", 1), ("roll", 0)]


def test_ports_that_move_down_are_freed_from_the_bottom() -> None:
    old, new = replicas(3, base=8001), replicas(3, base=8000)
    assert order(new, running(old)) == [("roll", 0), ("roll", 1), ("roll", 2)]


def test_a_port_of_a_superfluous_replica_is_freed_first() -> None:
    old, new = replicas(2, base=8000), replicas(1, base=8001)
    assert order(new, running(old)) == [("remove", 1), ("roll", 0)]


def test_ports_exchanged_in_a_cycle_evict_the_one_in_the_way() -> None:
    def swapped(up: int, down: int) -> list[Replica]:
        return replicas(2, ports=[{"name": "up", "base": up}, {"name": "down", "base": down}])

    old, new = swapped(8000, 9001), swapped(8001, 9000)
    found = steps(new, Observation(running(old)), {}, Goal.PRESENT)
    assert found == [ReplicaStep(Action.ROLL, 0, evict=(1,)), ReplicaStep(Action.ROLL, 1)]


def test_a_replica_in_another_group_moves() -> None:
    intended = replicas(1, group="web")
    elsewhere = running(intended, group="old")
    assert changes(diff(intended, elsewhere)) == [("replicas/0/group", "web", "old")]
    assert order(intended, elsewhere) == [("roll", 0)]
    both = (*elsewhere, *running(intended))
    assert changes(diff(intended, both)) == [("replicas/0/group", "web", "old")]
    assert order(intended, both) == [("roll", 0)]


def test_processes_of_a_dead_supervisord_still_serve_and_are_replaced_one_by_one() -> None:
    intended = replicas(2, base=8000)
    left = tuple(LeftBehind(index, ProcessId(50 + index, 1), ports=(8000 + index,)) for index in (0, 1))
    observation = Observation(running(intended, state=State.ABSENT, pid=None, content=""), left)
    found = differences(intended, observation, {}, Goal.PRESENT)
    assert changes(found) == [
        ("replicas/0", "running", "running without supervisord"),
        ("replicas/1", "running", "running without supervisord"),
    ]
    assert found.effects.capacity == 0
    assert steps(intended, observation, {}, Goal.PRESENT) == [
        ReplicaStep(Action.ROLL, 0),
        ReplicaStep(Action.ROLL, 1),
    ]


def test_fencing_stops_and_keeps_while_absence_removes() -> None:
    programs = (*running(replicas(1)), *running(replicas(2)[1:], state=State.STOPPED, pid=None))
    fenced = diff([], programs, goal=Goal.FENCED)
    assert changes(fenced) == [("replicas/0", "stopped", "running")]
    assert fenced.effects == Effects(capacity=-1, disruptive=True)
    assert order([], programs, goal=Goal.FENCED) == [("stop", 0)]
    absent = diff([], programs, goal=Goal.ABSENT)
    assert changes(absent) == [("replicas/0", None, "running"), ("replicas/1", None, "stopped")]
    assert order([], programs, goal=Goal.ABSENT) == [("remove", 1), ("remove", 0)]


def test_a_program_that_supervisord_would_start_again_is_not_yet_fenced() -> None:
    programs = running(replicas(1), state=State.BACKOFF, pid=None)
    assert not diff([], programs, goal=Goal.FENCED).empty


def test_only_starts_are_taken_together_and_never_the_first() -> None:
    ordered = [ReplicaStep(Action.START, index) for index in range(11)] + [
        ReplicaStep(Action.ROLL, 11),
        ReplicaStep(Action.ROLL, 12),
    ]
    indices = [[step.index for step in batch] for batch in batches(ordered)]
    assert indices == [[0], [1, 2, 3, 4, 5, 6, 7, 8], [9, 10], [11], [12]]


def test_a_diff_of_very_many_replicas_stays_short_and_still_tells_them_apart() -> None:
    found, other = diff(replicas(1000), ()), diff(replicas(999), ())
    assert len(msgspec.json.encode(found)) < 16_384
    assert found.changes[-1].intended == "900 more changes"
    assert found.digest() != other.digest()
    assert found.effects.capacity == 1000


def looked_again(programs: tuple[Program, ...], health: Health = Health.HEALTHY, *left: LeftBehind) -> bool:
    found = differences(replicas(1), Observation(programs, left), {0: health}, Goal.PRESENT)
    assert not found.empty
    return found.look_again is not None


@pytest.mark.parametrize(
    ("fields", "health", "recovers"),
    [
        ({"restarts": (1.0,)}, Health.STARTING, True),
        ({"launching": True}, Health.STARTING, True),
        ({"restarts": (1.0,)}, Health.UNHEALTHY, False),
        ({}, Health.STARTING, False),
        ({"state": State.EXITED, "pid": None}, Health.HEALTHY, True),
        ({"state": State.BACKOFF, "pid": None}, Health.HEALTHY, True),
        ({"state": State.BACKOFF, "pid": None, "content": "old"}, Health.HEALTHY, False),
        ({"state": State.FATAL, "pid": None}, Health.HEALTHY, False),
        ({"state": State.STOPPED, "pid": None}, Health.HEALTHY, False),
        ({"restarts": (1.0,), "content": "old"}, Health.STARTING, False),
        ({"state": State.BACKOFF, "pid": None, "group": "other"}, Health.HEALTHY, False),
    ],
)
def test_what_supervisord_starts_again_is_not_pushed(
    fields: dict[str, Any], health: Health, recovers: bool
) -> None:
    assert looked_again(running(replicas(1), **fields), health) is recovers


def test_recovery_of_one_replica_does_not_hold_up_what_another_one_needs() -> None:
    programs = running(replicas(2), restarts=(1.0,))
    older = msgspec.structs.replace(programs[1], content="old")
    found = diff(replicas(2), (programs[0], older), {0: Health.STARTING})
    assert found.look_again is None
    superfluous = diff(replicas(1), programs, {0: Health.STARTING})
    assert superfluous.look_again is None


@pytest.mark.parametrize(("start", "recovers"), [(4, False), (5, True)])
def test_a_process_that_outlived_a_restart_is_in_the_way_of_the_next(start: int, recovers: bool) -> None:
    worker = LeftBehind(0, ProcessId(7, start))
    programs = running(replicas(1), state=State.EXITED, pid=None, since=5)
    assert looked_again(programs, Health.HEALTHY, worker) is recovers


def test_a_former_process_beside_the_replica_is_ended_with_it() -> None:
    found = Observation(running(replicas(1)), (LeftBehind(0, ProcessId(7, 1)),))
    assert changes(differences(replicas(1), found, {}, Goal.PRESENT)) == [
        ("replicas/0/former", None, "running")
    ]
    assert steps(replicas(1), found, {}, Goal.PRESENT) == [ReplicaStep(Action.ROLL, 0)]


def test_what_was_not_started_for_a_restart_differs_until_it_was() -> None:
    intended = [msgspec.structs.replace(item, restart="r2") for item in replicas(2)]
    before, since = running(intended[:1], restart="r1"), running(intended[1:], restart="r2")
    found = diff(intended, before + since)
    assert changes(found) == [("replicas/0/process", "started by restart r2", "started before")]
    assert order(intended, before + since) == [("roll", 0)]


def test_without_a_request_any_start_will_do() -> None:
    intended = replicas(1)
    assert diff(intended, running(intended, restart="r1")).empty


def test_a_crash_does_not_replace_a_restart_that_was_asked_for() -> None:
    intended = [msgspec.structs.replace(item, restart="r2") for item in replicas(1)]
    crashed = running(intended, state=State.BACKOFF, pid=None, restart="")
    assert not diff(intended, crashed).empty
    assert not diff(intended, running(intended, restart="")).empty
