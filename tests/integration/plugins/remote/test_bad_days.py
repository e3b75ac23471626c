"""Plugins that hang, die, lie and answer nonsense: each has a clear word, and others continue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import FencedError, LehrError, StalledError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Diff, Effects
from lehr.model.operation import Progress, Result
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.remote import plugin as remote_plugin
from lehr.plugins.remote.plugin import RemotePlugin
from lehr.sdk.plugin import Fencing, Traits
from lehr.testing.plugins import FixedPush, FixedReader, FixedSecrets, push_of, target_of
from tests.integration.plugins.remote.line_plugin import TYPES, Line
from tests.integration.plugins.remote.managed import connection

SECRETS = FixedSecrets({"env:PASSWORD": "hunter22", "env:ANOTHER": "not for it"})


class Line1:
    """A line, and the plugin that keeps it."""

    def __init__(self, folder: Path, fault: str) -> None:
        self.path = folder / "motd"
        line = Line(str(self.path), "the password is ", Secret("env:PASSWORD"))
        self.asset: Asset = make_asset(AssetId("motd"), "example.Line", line, {})
        self.log: list[str] = []
        opened = connection("faulty_plugin.py", self.log, arguments=(fault,))
        self.plugin = RemotePlugin(opened, ["example.Line"], SystemClock(), SECRETS)

    async def diff(self) -> Diff:
        return await self.plugin.diff(target_of(self.asset), FixedReader([self.asset], Registry(TYPES)))

    async def push(self, push: FixedPush | None = None) -> Any:
        push = push or push_of(target_of(self.asset))
        reader = FixedReader([self.asset], Registry(TYPES))
        return await self.plugin.push(target_of(self.asset), reader, push)


@pytest.fixture
def line(tmp_path: Path) -> Callable[[str], Line1]:
    return lambda fault: Line1(tmp_path, fault)


def run(line: Line1, scenario: Coroutine[Any, Any, Any]) -> Any:
    async def to_its_end() -> Any:
        try:
            return await scenario
        finally:
            await line.plugin.close()

    return asyncio.run(to_its_end())


@pytest.mark.parametrize(
    ("fault", "kind", "code", "why"),
    [
        ("dies", TransientError, "PLG126", "exit code 3: out of paper"),
        ("status", TransientError, "PLG124", "status INTERNAL"),
        ("other-answer", TransientError, "PLG132", "an answer to another request"),
        ("no-result", TransientError, "PLG132", "an answer without a result"),
        ("no-json", TransientError, "PLG132", "a value of the change at 'text' is not JSON"),
        ("no-path", TransientError, "PLG132", "a change without a path"),
        ("needs-for-ever", TransientError, "PLG132", "it has asked for more intent 100 times"),
        ("needs-nothing", TransientError, "PLG132", "it asks for nothing"),
        ("needs-secret", StalledError, "PLG121", ""),
        ("too-large", TransientError, "PLG124", "status RESOURCE_EXHAUSTED"),
        ("unknown-trouble", StalledError, "", ""),
    ],
)
def test_a_diff_that_fails_is_named(
    line: Callable[[str], Line1], fault: str, kind: type[LehrError], code: str, why: str
) -> None:
    broken = line(fault)
    with pytest.raises(LehrError) as caught:
        run(broken, broken.diff())
    assert (type(caught.value).__mro__.count(kind), caught.value.code) == (1, code)
    assert why in caught.value.why
    assert "hunter22" not in str(caught.value)


def test_a_diff_that_hangs_ends_in_time_and_its_plugin_is_left_alone(
    line: Callable[[str], Line1], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_plugin, "traits_of", lambda message: Traits(diff_timeout=0.5))
    hanging = line("hangs")

    async def scenario() -> None:
        with pytest.raises(TransientError, match="has not answered Diff in time"):
            await hanging.diff()
        process = hanging.plugin.connection.process
        assert process is not None
        assert process.running

    run(hanging, scenario())


def test_a_plugin_that_has_stopped_altogether_is_killed_and_started_again(
    line: Callable[[str], Line1], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_plugin, "traits_of", lambda message: Traits(diff_timeout=0.5))
    stopped = line("stops")

    async def scenario() -> None:
        with pytest.raises(TransientError):
            await stopped.diff()
        assert stopped.plugin.connection.process is None
        await asyncio.sleep(1.0)
        assert (await stopped.plugin.connection.describe()).name == "faulty"

    run(stopped, scenario())


def test_secrets_that_a_plugin_tells_are_hidden(line: Callable[[str], Line1]) -> None:
    telling = line("tells-secret")
    with pytest.raises(StalledError) as caught:
        run(telling, telling.diff())
    assert str(caught.value) == "[secret] is wrong: as [secret] is"
    found = run(showing := line("shows-secret"), showing.diff())
    assert found.changes[0].intended == ["[secret]"]
    assert found.changes[0].observed == {"[secret]": 1}
    assert found.notes == ("it was [secret]",)
    outcome = run(pushing := line("push-tells-secret"), pushing.push())
    assert (outcome.result, outcome.message) == (Result.DONE, "the password is [secret]")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("push-dies", "the plugin faulty_plugin.py has ended: exit code 3 (see its log)"),
        ("push-ends", "the plugin faulty_plugin.py has ended a push without an outcome"),
        ("push-status", "the plugin has not answered Push: status INTERNAL"),
    ],
)
def test_a_push_without_an_outcome_is_unknown(line: Callable[[str], Line1], fault: str, message: str) -> None:
    broken = line(fault)

    async def scenario() -> Any:
        outcome = await broken.push()
        # What follows: the plugin of a new process is asked, and compares.
        operation = push_of(target_of(broken.asset)).operation
        await asyncio.sleep(1.0)
        return outcome, await broken.plugin.status(operation), await broken.diff()

    outcome, state, diff = run(broken, scenario())
    assert (outcome.result, outcome.message) == (Result.UNKNOWN, message)
    assert state is Progress.ENDED
    assert not diff.empty


def test_a_result_of_the_future_is_unknown(line: Callable[[str], Line1]) -> None:
    outcome = run(broken := line("push-unknown-result"), broken.push())
    assert (outcome.result, outcome.message) == (Result.UNKNOWN, "done, somehow")


def test_trouble_in_the_description_is_named(line: Callable[[str], Line1]) -> None:
    broken = line("describe-trouble")
    with pytest.raises(StalledError, match="no account is configured") as caught:
        run(broken, broken.diff())
    assert caught.value.fix == "set ACCOUNT"


def test_an_operation_that_has_been_called_ended_does_not_start(line: Callable[[str], Line1]) -> None:
    good = line("")

    async def scenario() -> None:
        push = push_of(target_of(good.asset))
        assert await good.plugin.status(push.operation) is Progress.ENDED
        with pytest.raises(TransientError, match="has ended before"):
            await good.push(push)
        assert not good.path.exists()

    run(good, scenario())


def test_a_late_writer_is_refused(line: Callable[[str], Line1]) -> None:
    fenced = line("push-fenced")
    with pytest.raises(FencedError, match="epoch 1 is over: a newer control plane has pushed this asset"):
        run(fenced, fenced.push())


def test_an_unknown_state_may_still_run(line: Callable[[str], Line1]) -> None:
    odd = line("unknown-state")
    operation = push_of(target_of(odd.asset)).operation
    assert run(odd, odd.plugin.status(operation)) is Progress.RUNNING


def test_unknown_traits_are_the_usual_ones(line: Callable[[str], Line1]) -> None:
    odd = line("describe-garbage")
    run(odd, odd.diff())
    assert odd.plugin.traits.fencing is Fencing.NONE
    assert odd.plugin.traits.diff_timeout == Traits().diff_timeout
    assert odd.plugin.traits.turns <= 1000


def test_a_cancelled_push_is_cancelled_in_the_plugin(line: Callable[[str], Line1]) -> None:
    lasting = line("push-lasts")

    async def scenario() -> None:
        push = push_of(target_of(lasting.asset))
        task = asyncio.ensure_future(lasting.push(push))
        while not push.messages:  # noqa: ASYNC110 - a plugin has no event for it
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(lasting, scenario())


def test_the_trouble_of_one_delays_no_other(line: Callable[[str], Line1]) -> None:
    hanging, good = line("hangs"), line("")

    async def scenario() -> Diff:
        waiting = asyncio.ensure_future(hanging.diff())
        try:
            found = await good.diff()
            assert not waiting.done()
            return found
        finally:
            waiting.cancel()
            await good.plugin.close()

    assert run(hanging, scenario()).effects == Effects()
