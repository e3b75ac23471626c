"""The figures of plugins in other processes: their calls, starts and unexpected ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from lehr.base.errors import LehrError
from lehr.plugins.remote import plugin as remote_plugin
from lehr.sdk.plugin import Traits
from lehr.sdk.plugin_meter import Metered, PluginMeter
from tests.integration.plugins.remote.managed import line_plugin
from tests.integration.plugins.remote.test_bad_days import Line1, run


def meter_of(line: Line1) -> PluginMeter:
    assert isinstance(line.plugin, Metered)
    [found] = line.plugin.meters()
    return found


@pytest.mark.parametrize(
    ("fault", "outcomes", "ends"),
    [
        ("dies", {"lost": 1}, 1),
        ("status", {"error": 1}, 0),
        ("unknown-trouble", {"stalled": 1}, 0),
        ("needs-for-ever", {"need": 101}, 0),
        ("hangs", {"timeout": 1}, 0),
        ("shows-secret", {"need": 1, "ok": 1}, 0),
    ],
)
def test_a_diff_is_counted_by_its_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, outcomes: dict[str, int], ends: int
) -> None:
    if fault == "hangs":
        monkeypatch.setattr(remote_plugin, "traits_of", lambda message: Traits(diff_timeout=0.5))
    line = Line1(tmp_path, fault)

    async def scenario() -> None:
        with contextlib.suppress(LehrError):
            await line.diff()
        meter = meter_of(line)
        assert {outcome: n for (name, outcome), n in meter.calls.items() if name == "Diff"} == outcomes
        assert sum(meter.seconds["Diff"].counts) == sum(outcomes.values())
        assert (meter.starts, meter.ends, meter.up) == (1, ends, not ends)

    run(line, scenario())


@pytest.mark.parametrize(("fault", "outcome"), [("push-dies", "lost"), ("push-tells-secret", "ok")])
def test_a_push_is_counted_by_its_outcome(tmp_path: Path, fault: str, outcome: str) -> None:
    line = Line1(tmp_path, fault)

    async def scenario() -> None:
        await line.push()
        calls = Counter({name: n for (name, found), n in meter_of(line).calls.items() if found == outcome})
        assert calls["Push"] == 1

    run(line, scenario())


def test_a_process_that_ends_between_two_calls_is_not_up_until_it_is_started_again() -> None:
    async def scenario() -> None:
        plugin, states = line_plugin([]), []

        def note() -> None:
            meter = plugin.connection.meter
            states.append((meter.starts, meter.ends, meter.up))

        note()
        await plugin.connection.ready()
        note()
        process = plugin.connection.process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        await process.ended()
        note()
        await plugin.connection.ready()
        note()
        await plugin.close()
        note()  # that was meant
        assert states == [(0, 0, None), (1, 0, True), (1, 0, False), (2, 1, True), (2, 1, False)]

    asyncio.run(scenario())
