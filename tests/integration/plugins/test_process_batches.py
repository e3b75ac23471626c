# ruff: noqa: F401, F811  (fixtures)
"""Processes that are compared together: one call to each supervisord, and the trouble of one is its own."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.base.errors import LehrError
from lehr.model.asset import Asset
from lehr.model.diff import Diff
from lehr.plugins.process import procfs, rpc
from lehr.plugins.process.plugin import ProcessPlugin
from lehr.testing.plugins import FixedReader, target_of
from tests.integration.plugins.test_process_own import master
from tests.integration.plugins.test_process_plugin import (
    REGISTRY,
    Site,
    end,
    get,
    ports,
    program,
    site,
    state,
    web,
)

ELSEWHERE = "elsewhere"
QUIET = Diff(outputs={"restarts": 0, "crash_loops": []})


def sleeper(id: str, **fields: Any) -> Asset:
    return program("sleep", "600", id=id, **fields)


def together(site: Site, *assets: Asset) -> dict[str, Diff | LehrError]:
    """The answers by asset, in the order in which they came."""

    async def work(plugin: ProcessPlugin) -> dict[str, Diff | LehrError]:
        requests = [(target_of(asset), FixedReader([asset], REGISTRY)) for asset in assets]
        return {assets[index].id: answer async for index, answer in plugin.diff_many(requests)}

    found = site.run(work)
    assert isinstance(found, dict)
    return found


def plain(answer: Diff | LehrError) -> object:
    return answer if isinstance(answer, Diff) else (type(answer), answer.code, str(answer))


def same_as_one_by_one(site: Site, *assets: Asset) -> dict[str, Diff | LehrError]:
    found = together(site, *assets)
    for asset in assets:
        expected: Diff | LehrError
        try:
            expected = site.diff(asset)
        except LehrError as error:
            expected = error
        assert plain(found[asset.id]) == plain(expected)
    return found


@contextlib.contextmanager
def stopped(process: procfs.ProcessId) -> Iterator[None]:
    procfs.send(process, signal.SIGSTOP)
    try:
        yield
    finally:
        procfs.send(process, signal.SIGCONT)


def supervisord_of(site: Site, group: str) -> procfs.ProcessId:
    return next(
        process
        for process, marks in procfs.marked(site.root)
        if procfs.REPLICA not in marks and Path(marks[procfs.SUPERVISOR]).name == group
    )


def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts calls to supervisords, by group."""
    found: Counter[str] = Counter()
    connect = rpc._Connection.connect

    def counted(connection: rpc._Connection) -> None:
        found[connection._directory.name] += 1
        connect(connection)

    monkeypatch.setattr(rpc._Connection, "connect", counted)
    return found


def test_fifty_programs_take_one_call_to_their_supervisord(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = [sleeper("a"), sleeper("b", replicas=2)]
    for asset in (*running, sleeper("c", group=ELSEWHERE)):
        site.apply(asset)
    changed = program("sleep", "700", id="a")
    assets = [changed, running[1], sleeper("c", group=ELSEWHERE), sleeper("missing")]
    found = same_as_one_by_one(site, *assets)
    assert found["b"] == found["c"] == QUIET
    asked = calls(monkeypatch)
    assert len(together(site, *assets, *(sleeper(f"n{n}") for n in range(46)))) == 50
    assert asked == {"test": 1, ELSEWHERE: 1}


def test_a_supervisord_that_hangs_fails_its_own_assets_and_the_others_are_answered_first(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = [sleeper("a", group=ELSEWHERE), sleeper("b", group=ELSEWHERE), sleeper("c")]
    for asset in (assets[0], assets[2], sleeper("moves", group=ELSEWHERE)):
        site.apply(asset)
    assets.insert(0, sleeper("moves"))
    monkeypatch.setattr(rpc, "TIMEOUT", 0.3)
    with stopped(supervisord_of(site, ELSEWHERE)):
        found = same_as_one_by_one(site, *assets)
        asked = calls(monkeypatch)
        together(site, *assets)
    assert next(iter(found.items())) == ("c", QUIET)
    assert {name for name, answer in found.items() if isinstance(answer, LehrError)} == {"moves", "a", "b"}
    assert asked[ELSEWHERE] == 2, "once for its own assets, once for the one that moves away from it"


def test_the_processes_of_a_supervisord_that_was_killed_are_found(site: Site, ports: int) -> None:
    wiped = master(ports, "1", group=ELSEWHERE)  # only its note shows whose it is
    assets = [sleeper("a", group=ELSEWHERE), wiped, sleeper("c")]
    for asset in assets:
        site.apply(asset)
    end(supervisord_of(site, ELSEWHERE))
    found = same_as_one_by_one(site, *assets)
    assert found["c"] == QUIET
    for name in ("a", wiped.id):
        answer = found[name]
        assert isinstance(answer, Diff)
        assert [change.observed for change in answer.changes] == ["running without supervisord"]


def test_definitions_that_cannot_be_listed_are_the_trouble_of_one(site: Site) -> None:
    assets = [sleeper("a"), sleeper("b")]
    for asset in assets:
        site.apply(asset)
    folder = site.root / "test" / "assets" / "test=a"
    folder.rename(folder.with_name("moved"))
    folder.write_text("in the way")
    found = same_as_one_by_one(site, *assets)
    assert isinstance(found["a"], LehrError)
    assert found["b"] == QUIET


def test_nobody_waits_for_the_health_of_another(site: Site, ports: int) -> None:
    sick = web(ports, "sick", replicas=1, health_timeout_seconds=1, start_timeout_seconds=0.5)
    site.apply(sick)
    site.apply(sleeper("a"))
    get(ports, "/break")
    found = together(site, sick, sleeper("a"))
    assert list(found) == ["a", "sick"]
    assert found["a"] == QUIET
    answer = found["sick"]
    assert isinstance(answer, Diff)
    assert [change.observed for change in answer.changes] == ["unhealthy"]


def test_processes_that_were_compared_together_are_watched(site: Site) -> None:
    assets = [sleeper("a"), sleeper("b")]
    for asset in assets:
        site.apply(asset)

    async def killed(plugin: ProcessPlugin) -> str:
        requests = [(target_of(asset), FixedReader([asset], REGISTRY)) for asset in assets]
        assert [answer async for _, answer in plugin.diff_many(requests)] == [QUIET, QUIET]
        [program] = [
            process
            for process, marks in procfs.marked(site.root)
            if marks.get(procfs.REPLICA, "").endswith(":b#0")
        ]
        end(program)
        async with contextlib.aclosing(plugin.watch()) as hints:  # type: ignore[type-var]
            return (await anext(hints)).id

    assert site.run(killed) == "b"
