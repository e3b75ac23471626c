"""How plugins are opened, lost, replaced and closed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Target
from lehr.model.operation import Progress, Result
from lehr.model.types import Registry
from lehr.plugins.plugin_process import PluginProcess, PluginProcesses, Program
from lehr.plugins.remote import connection as connections
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.channel import DESCRIBE, DIFF, Channel, LostError, Method
from lehr.plugins.remote.connection import Connection, Opened
from lehr.plugins.remote.opening import HANDSHAKE, Attached, Managed, Start
from lehr.plugins.remote.plugin import RemotePlugin
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests.integration.plugins.remote.line_plugin import TYPES, Line
from tests.integration.plugins.remote.managed import HERE, connection

PATHS = os.pathsep.join(path for path in sys.path if path)

SLOW = """\
import asyncio, sys
from tests.integration.plugins.remote.line_plugin import LinePlugin, TYPES
from lehr.plugins.remote.server import serve

class SlowPlugin(LinePlugin):
    async def push(self, target, read, push):
        push.progress("version VERSION")
        while not push.superseded:
            await asyncio.sleep(0.01)
            import os
            if os.path.exists("GATE"):
                break
        return await super().push(target, read, push)

serve("slow", SlowPlugin, version="VERSION", types=TYPES)
"""


class Observed:
    """Notes what becomes of a plugin."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def opened(self, description: m.DescribeResponse, process: PluginProcess | None) -> None:
        self.events.append(f"opened {description.version}")

    def failed(self, error: LehrError) -> None:
        self.events.append(f"failed {error.code}")

    def closed(self) -> None:
        self.events.append("closed")


class Slow:
    """A program that pushes until a gate is there, and whose file can be replaced."""

    def __init__(self, folder: Path) -> None:
        self.path, self.gate, self.line = folder / "slow.py", folder / "gate", folder / "motd"
        self.write("1")
        self.observed = Observed()
        processes = PluginProcesses(Inline(), SystemClock())
        program = Program((str(self.path),), {"PYTHONPATH": PATHS})

        async def start() -> Start:
            return Start(program)

        opener = Managed(processes, start, lambda line: None)
        self.connection = Connection("slow", opener, SystemClock(), observer=self.observed)
        self.plugin = RemotePlugin(self.connection, ["example.Line"], SystemClock())
        self.asset = make_asset(AssetId("motd"), "example.Line", Line(str(self.line), "hello"), {})

    def write(self, version: str) -> None:
        new = self.path.with_suffix(".new")
        text = SLOW.replace("VERSION", version).replace("GATE", str(self.gate))
        new.write_text(f"#!{sys.executable}\n{text}")
        new.chmod(0o755)
        os.replace(new, self.path)

    def reader(self) -> FixedReader:
        return FixedReader([self.asset], Registry(TYPES))


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slow:
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.0)
    return Slow(tmp_path)


def test_a_replaced_program_serves_beside_the_old_one_until_its_pushes_have_ended(slow: Slow) -> None:
    async def scenario() -> None:
        target, push = target_of(slow.asset), push_of(target_of(slow.asset))
        pushing = asyncio.ensure_future(slow.plugin.push(target, slow.reader(), push))
        await until(lambda: push.messages == ["version 1"])
        slow.write("2")
        await until_described(slow.connection, "2")
        # The new one knows nothing of the push, and the old one does.
        assert await slow.plugin.status(push.operation) is Progress.RUNNING
        assert not (await slow.plugin.diff(target, slow.reader())).empty
        slow.gate.touch()
        assert (await pushing).result is Result.DONE
        assert (await slow.plugin.diff(target, slow.reader())).empty
        assert await slow.plugin.status(push.operation) is Progress.ENDED
        await slow.plugin.close()

    asyncio.run(scenario())
    assert slow.observed.events == ["opened 1", "opened 2", "closed"]


def test_the_old_one_stays_while_it_may_carry_out_a_push_that_was_given_up(slow: Slow) -> None:
    async def scenario() -> None:
        target, push = target_of(slow.asset), push_of(target_of(slow.asset))
        pushing = asyncio.ensure_future(slow.plugin.push(target, slow.reader(), push))
        await until(lambda: push.messages == ["version 1"])
        slow.write("2")
        await until_described(slow.connection, "2")
        pushing.cancel()
        await asyncio.gather(pushing, return_exceptions=True)
        (retiring,) = slow.connection._retiring.values()
        assert retiring.alive
        while await slow.plugin.status(push.operation) is not Progress.ENDED:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await until(lambda: not retiring.alive)
        await slow.plugin.close()

    asyncio.run(scenario())


def test_an_old_one_is_cancelled_where_its_push_is(slow: Slow) -> None:
    async def scenario() -> Result:
        target, push = target_of(slow.asset), push_of(target_of(slow.asset))
        pushing = asyncio.ensure_future(slow.plugin.push(target, slow.reader(), push))
        await until(lambda: push.messages == ["version 1"])
        slow.write("2")
        await until_described(slow.connection, "2")
        push.superseded = True
        outcome = await pushing
        await slow.plugin.close()
        return outcome.result

    assert asyncio.run(scenario()) is Result.DONE


def test_if_the_new_program_does_not_start_the_old_one_continues(slow: Slow) -> None:
    async def scenario() -> str:
        await slow.connection.describe()
        slow.path.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('syntax error')\n")
        while "failed PLG101" not in slow.observed.events:
            version = (await slow.connection.describe()).version
            await asyncio.sleep(0.01)
        assert (await slow.plugin.diff(target_of(slow.asset), slow.reader())).changes
        await slow.plugin.close()
        return str(version)

    assert asyncio.run(scenario()) == "1"


def test_failures_to_start_are_repeated_with_pauses() -> None:
    async def scenario() -> list[str]:
        observed, opened = Observed(), connection("no_such_plugin.py", [])
        opened._observer = observed
        for _ in range(50):
            with pytest.raises(TransientError):
                await opened.describe()
        await opened.close()
        return observed.events

    # The first pause is half a second at least: most of the fifty calls start nothing.
    assert 1 <= asyncio.run(scenario()).count("failed PLG101") < 25


class Crashing:
    """Opens plugins that are lost at each call but `Describe`; their channel is this object itself."""

    opened = 0

    async def open(self) -> Opened:
        self.opened += 1
        return Opened(cast(Channel, self))

    async def changed(self) -> bool:
        return False

    async def call(self, method: Method, request: Any, seconds: float) -> Any:
        if method is not DESCRIBE:
            raise LostError("the plugin is gone", code="PLG120")
        return m.DescribeResponse(name="crashing")

    async def close(self) -> None:
        pass


class SteppedClock(SystemClock):
    """A clock that moves when a test moves it."""

    at = 1000.0

    def monotonic(self) -> float:
        return self.at


def test_a_plugin_that_is_lost_at_each_call_is_opened_ever_less_often() -> None:
    async def scenario() -> list[int]:
        opener, clock = Crashing(), SteppedClock()
        connection, opened = Connection("crashing", opener, clock), []
        for _minute in range(10):
            before = opener.opened
            for _second in range(60):
                clock.at += 1.0
                with pytest.raises(TransientError):
                    await connection.call(DIFF, m.DiffRequest(), 1.0)
            opened.append(opener.opened - before)
        await connection.close()
        return opened

    first, *_between, last = asyncio.run(scenario())
    assert 10 <= first <= 16
    assert last == 1


def test_a_plugin_of_its_own_life_cycle_is_found_again_after_it_was_restarted(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = await own(tmp_path)
        observed = Observed()
        opened = Connection("lines", Attached(first.address), SystemClock(), observer=observed)
        assert (await opened.describe()).version == "1.2"
        await first.stop()
        with pytest.raises(TransientError):
            await RemotePlugin(opened, ["example.Line"], SystemClock()).diff(*asked(tmp_path))
        socket = Path(first.address.removeprefix("unix:"))
        second = await own(tmp_path)
        socket.parent.mkdir()
        os.symlink(second.address.removeprefix("unix:"), socket)
        await until_available(opened)
        assert (await RemotePlugin(opened, ["example.Line"], SystemClock()).diff(*asked(tmp_path))).changes
        await opened.close()
        assert second.running, "what Lehr has not started, it does not end"
        await second.stop()

    asyncio.run(scenario())


def test_an_address_in_the_network_needs_tls() -> None:
    async def scenario() -> None:
        opened = Connection("lines", Attached("127.0.0.1:1"), SystemClock())
        with pytest.raises(StalledError, match="needs TLS"):
            await opened.describe()

    asyncio.run(scenario())


def test_nothing_is_left_when_it_is_closed(tmp_path: Path) -> None:
    async def scenario() -> None:
        opened = connection("line_plugin.py", [])
        await opened.describe()
        process = opened.process
        assert process is not None
        await opened.close()
        assert not process.running
        with pytest.raises(TransientError, match="is closed"):
            await opened.describe()

    asyncio.run(scenario())


async def own(folder: Path) -> PluginProcess:
    """A plugin that Lehr has not started."""
    processes = PluginProcesses(Inline(), SystemClock())
    program = Program((sys.executable, str(HERE / "line_plugin.py")), {"PYTHONPATH": PATHS})
    return await processes.start(program, HANDSHAKE, seconds=30.0, log=lambda line: None)


def asked(folder: Path) -> tuple[Target, FixedReader]:
    asset: Asset = make_asset(AssetId("motd"), "example.Line", Line(str(folder / "motd"), "x"), {})
    return target_of(asset), FixedReader([asset], Registry(TYPES))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - a plugin in another process sets no event
        await asyncio.sleep(0.01)


async def until_available(opened: Connection) -> None:
    while True:
        with contextlib.suppress(TransientError):
            await opened.describe()
            return
        await asyncio.sleep(0.05)


async def until_described(opened: Connection, version: str) -> None:
    while (await opened.describe()).version != version:  # noqa: ASYNC110 - likewise
        await asyncio.sleep(0.01)
