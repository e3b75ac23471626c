# ruff: noqa: F401, F811  (fixtures)
"""A crash that supervisord puts right costs no push, and is told; a crash loop is not taken for a start."""

from __future__ import annotations

import os
import signal

from lehr.base.clock import SystemClock
from lehr.model.asset import Asset
from lehr.model.diff import Diff
from lehr.plugins.process import rpc
from lehr.plugins.process.ownership import read_note
from lehr.plugins.process.plugin import ProcessPlugin
from lehr.testing.plugins import FixedReader, target_of
from tests.integration.plugins.test_process_own import master, the_master
from tests.integration.plugins.test_process_plugin import (
    REGISTRY,
    Site,
    end,
    get,
    kill,
    ports,
    program,
    site,
    state,
    until,
    web,
)


def looks_after_a_kill(site: Site, asset: Asset) -> list[Diff]:
    """All that a control plane sees from the end of the replica's process until it is as intended again."""
    kill(site.pids()[0])
    found = [site.diff(asset)]
    while not found[-1].empty:
        found.append(site.diff(asset))
    return found


def settled(site: Site) -> bool:
    """Whether supervisord takes an end of the process for a crash, and no longer for a failed start."""
    return bool(rpc.call(site.root / "test", "getProcessInfo", "test=web-0")["statename"] == "RUNNING")


def test_each_crash_is_one_restart_and_no_push(site: Site, ports: int) -> None:
    asset = web(ports, replicas=1, version="1", start_timeout_seconds=40)
    site.apply(asset)
    for early in (False, False, True):  # a process that ends within a second is started after another one
        until(lambda early=early: early or settled(site))  # type: ignore[misc]
        looks = looks_after_a_kill(site, asset)
        assert [look for look in looks if not look.empty and look.look_again is None] == []
    note = read_note(next(site.root.glob("*/assets/*/0.run")))
    assert note is not None
    assert note.started == 4, "one start, and one restart for each kill"
    last = site.diff(asset)
    assert last.outputs == {"restarts": 3, "crash_loops": []}
    [line] = last.notes
    assert line.startswith("replica 0 was killed by SIGKILL, restarted by supervisord at ")
    assert "(3 restarts since " in line


def test_a_crash_is_told_until_it_is_long_past(site: Site, ports: int) -> None:
    asset = web(ports, replicas=1)
    site.apply(asset)
    assert site.diff(asset).notes == ()
    last = looks_after_a_kill(site, asset)[-1]
    assert len(last.notes) == 1
    assert last.notes[0].startswith("replica 0 was killed by SIGKILL, restarted by supervisord at ")
    site.apply(web(ports, replicas=1, version="2"))
    assert site.diff(web(ports, replicas=1, version="2")).notes == (), "a push is not a crash"


def test_a_start_that_never_succeeds_needs_a_push_which_says_why(site: Site, ports: int) -> None:
    asset = web(ports, replicas=1, start_timeout_seconds=0.5)
    site.apply(asset)
    document = next(site.root.glob("*/assets/*/0.json"))
    document.write_text(document.read_text().replace('"VERSION"', '"DIES": "3", "VERSION"'))
    kill(site.pids()[0])

    async def looked(plugin: ProcessPlugin) -> list[Diff]:
        found = [await plugin.diff(target_of(asset), FixedReader([asset], REGISTRY))]
        while found[-1].look_again is not None:
            await SystemClock().sleep(0.05)
            found.append(await plugin.diff(target_of(asset), FixedReader([asset], REGISTRY)))
        return found

    looks = site.run(looked)
    assert not looks[-1].empty
    assert len(looks) > 1, "it was given its time first"


def test_workers_that_stand_in_the_way_of_a_restart_are_not_waited_for(site: Site, ports: int) -> None:
    """Their master was killed, and its successor cannot listen: they answer in its place."""
    asset = master(ports, "1")
    site.apply(asset)
    end(the_master(site))
    until(lambda: not (found := site.diff(asset)).empty and found.look_again is None)
    site.apply(asset)
    assert get(ports) == "1"


def test_a_process_that_is_stopped_by_a_signal_is_unhealthy_and_restarted(site: Site) -> None:
    asset = program(
        "sleep", "600", start_timeout_seconds=2, stop_timeout_seconds=1, health_timeout_seconds=0.2
    )
    site.apply(asset)
    old = site.pids()[0]
    until(lambda: site.paths(asset) == [])
    os.kill(old, signal.SIGSTOP)
    until(lambda: site.paths(asset) == [("replicas/0/health", "healthy", "unhealthy")])
    site.apply(asset)
    assert site.pids()[0] != old
