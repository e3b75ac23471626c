"""Bad days of Terraform resources, each with a clear word: over a provider in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError, StalledError, TransientError, WaitingError
from lehr.model.asset import Asset
from lehr.model.diff import Diff, Goal
from lehr.model.operation import Outcome, Progress, Result
from lehr.model.secret import Secret
from lehr.plugins.terraform.handle import parse
from lehr.plugins.terraform.plugin import TerraformPlugin
from lehr.plugins.terraform.provider import Block, ProviderGoneError, Schema
from lehr.testing.plugins import push_of, target_of
from tests.terraform.assets import (
    IDENTITY,
    PASSWORD,
    TOKEN,
    disk,
    network,
    parameter,
    plugin_of,
    provider_asset,
    queue,
    reader,
    resource,
)
from tests.terraform.cloud import ID, SCHEMA, TAGS, Cloud, failure, text

QUEUE = ("cloud_queue", "https://queue.example/4711/orders")


class Loop:
    """What the Enforcer does with one asset: it keeps the handle, and looks after each push."""

    def __init__(self, cloud: Cloud, asset: Asset, **settings: Any) -> None:
        self.cloud = cloud
        self.asset = asset
        self.settings = settings
        self.handle = ""
        self.lost = ""
        self.pushes = 0
        self.plugin = plugin_of(cloud, **settings)

    def restart(self) -> None:
        """A new process, after the old one was killed."""
        self.plugin = plugin_of(self.cloud, **self.settings)

    async def diff(self, goal: Goal = Goal.PRESENT) -> Diff:
        target = replace(target_of(self.asset, goal), handle=self.handle, lost=self.lost)
        found = await self.plugin.diff(target, reader(self.asset))
        self.lost = ""
        if isinstance(found.handle, str):
            self.handle = found.handle
        return found

    async def push(self, goal: Goal = Goal.PRESENT, approved: Diff | None = None) -> Outcome:
        self.pushes += 1
        target = replace(target_of(self.asset, goal), handle=self.handle)
        push = push_of(target, f"push-{self.pushes}", diff=approved or Diff())
        outcome = await self.plugin.push(target, reader(self.asset), push)
        if isinstance(outcome.handle, str):
            self.handle = outcome.handle
        if outcome.result is Result.UNKNOWN:
            self.lost = push.operation.id
        return outcome

    async def applied(self, asset: Asset | None = None) -> None:
        self.asset = asset or self.asset
        outcome = await self.push()
        assert outcome.result is Result.DONE, outcome
        assert (await self.diff()).empty


def fails(call: str, error: Exception) -> Callable[[str, str], Coroutine[Any, Any, None]]:
    async def fail(name: str, type: str) -> None:
        if name == call:
            raise error

    return fail


def raised(call: Awaitable[object]) -> LehrError:
    async def run() -> LehrError:
        with pytest.raises(LehrError) as found:
            await call
        return found.value

    return asyncio.run(run())


def test_what_the_api_cannot_show_is_laid_over() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, queue(2))  # force_destroy: true, which the API does not return
        await loop.applied()
        loop.restart()
        assert (await loop.diff()).empty
        loop.asset = queue(1)
        paths = {change.path: (change.intended, change.observed) for change in (await loop.diff()).changes}
        assert paths["force_destroy"] == (False, True)  # known from the handle

    asyncio.run(run())


def test_an_adopted_resource_is_taken_as_intended_where_it_cannot_be_read() -> None:
    cloud = Cloud()

    async def run() -> None:
        first = Loop(cloud, queue(2))
        await first.applied()
        second = Loop(cloud, queue(2))
        found = await second.diff()
        assert found.empty
        assert parse(second.handle).id == QUEUE[1]

    asyncio.run(run())


def test_a_deleted_resource_is_created_again() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, queue(1))
        await loop.applied()
        del cloud.resources[QUEUE]
        found = await loop.diff()
        assert found.changes[0].path == "resource"
        assert found.outputs == {}
        await loop.applied()
        assert len(cloud.of("cloud_queue")) == 1

    asyncio.run(run())


def test_a_resource_that_was_just_created_may_be_hidden_for_a_while() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, network(1), visible_seconds=3600.0)
        await loop.applied()
        [item] = cloud.of("cloud_network")
        cloud.hides[item["id"]] = 100
        with pytest.raises(TransientError, match="not visible"):
            await loop.diff()
        with pytest.raises(TransientError, match="not visible"):
            await loop.push()
        cloud.hides.clear()
        assert (await loop.diff()).empty
        assert cloud.made == 1

    asyncio.run(run())


def test_replacing_needs_approval_and_is_carried_out_as_approved() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, network(1))
        await loop.applied()
        loop.asset = resource("cloud_network", {"range": "10.1.0.0/16", "comment": "size 1"})
        found = await loop.diff()
        assert found.effects.destructive
        assert found.effects.disruptive
        assert found.changes[0].intended == "destroyed and created again"
        with pytest.raises(TransientError, match="approved"):
            await loop.push()
        cloud.calls.clear()
        assert (await loop.push(approved=found)).result is Result.DONE
        assert [call for call, _type in cloud.calls if call in ("plan", "apply")][:5] == [
            *("plan", "plan", "apply", "plan", "apply")  # of the change; of the end; of nothing
        ]
        [item] = cloud.of("cloud_network")
        assert item["range"] == "10.1.0.0/16"
        assert parse(loop.handle).id == item["id"]

    asyncio.run(run())


def test_a_creation_with_an_error_keeps_its_handle_and_is_replaced_with_approval() -> None:
    cloud = Cloud()
    cloud.creation_error = f"tags were refused for {TOKEN}"

    async def run() -> None:
        loop = Loop(cloud, disk(1))
        outcome = await loop.push()
        assert outcome.result is Result.FAILED
        assert "tags were refused for [secret]" in outcome.message
        assert parse(loop.handle).tainted == "push-1"
        cloud.creation_error = ""
        found = await loop.diff()
        assert found.effects.destructive
        assert found.changes[0].observed == "created with an error"
        verified = Loop(cloud, disk(1, verified_push="push-1"))
        verified.handle = loop.handle
        assert (await verified.diff()).empty
        assert (await loop.push(approved=found)).result is Result.DONE
        assert len(cloud.of("cloud_disk")) == 1
        assert not parse(loop.handle).tainted

    asyncio.run(run())


def test_a_name_that_is_taken_asks_for_the_import() -> None:
    cloud = Cloud()

    async def run() -> None:
        await Loop(cloud, parameter(1)).applied()
        outcome = await Loop(cloud, parameter(1, import_=None)).push()
        assert outcome.result is Result.STALLED
        assert "add `import: ID`" in outcome.message

    asyncio.run(run())


@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
def test_a_provider_that_dies_while_it_creates_what_cannot_be_searched(after: bool) -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, disk(1))
        if after:
            cloud.after = fails("apply", ProviderGoneError(f"panic: {TOKEN}"))
        else:
            cloud.before = fails("apply", ProviderGoneError(f"panic: {TOKEN}"))
        outcome = await loop.push()
        assert outcome.result is Result.UNKNOWN
        assert TOKEN not in outcome.message
        cloud.after = cloud.before = None
        with pytest.raises(StalledError) as stalled:
            await loop.diff()
        assert "add `import: ID`" in stalled.value.fix
        assert "verified_push: push-1" in stalled.value.fix
        if after:
            [item] = cloud.of("cloud_disk")
            loop.asset = disk(1, import_=item["id"])
            assert (await loop.diff()).empty
        else:
            loop.asset = disk(1, verified_push="push-1")
            await loop.diff()
            await loop.applied()
        assert cloud.made == 1

    asyncio.run(run())


def test_a_verified_push_counts_only_once() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, disk(1, verified_push="push-0"))
        cloud.after = fails("apply", ProviderGoneError("killed"))
        await loop.push()
        cloud.after = None
        with pytest.raises(StalledError, match="may have created"):
            await loop.diff()

    asyncio.run(run())


def test_what_has_a_tag_is_found_after_its_provider_died() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, network(1))
        cloud.after = fails("apply", ProviderGoneError("killed"))
        assert (await loop.push()).result is Result.UNKNOWN
        cloud.after = None
        loop.restart()
        found = await loop.diff()
        assert found.empty
        [item] = cloud.of("cloud_network")
        assert item["tags"] == {"a": "b", "lehr-operation": "push-1"}
        assert parse(loop.handle).id == item["id"]

    asyncio.run(run())


def test_what_has_no_tag_yet_is_looked_for_before_it_is_created_again() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, network(1), visible_seconds=3600.0)
        cloud.before = fails("apply", ProviderGoneError("killed"))
        await loop.push()
        cloud.before = None
        with pytest.raises(TransientError, match="not known whether"):
            await loop.diff()
        assert loop.lost  # it is named until there is an answer

    asyncio.run(run())


def test_a_data_source_that_needs_more_than_tags_does_not_show_that_nothing_was_created(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs_more = Block(attributes=(ID, TAGS, text("range", required=True)))
    monkeypatch.setitem(SCHEMA.data_sources, "cloud_network", Schema(0, needs_more))
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, network(1))
        cloud.after = fails("apply", ProviderGoneError("killed"))
        assert (await loop.push()).result is Result.UNKNOWN
        cloud.after = None
        loop.restart()
        with pytest.raises(StalledError, match="may have created"):
            await loop.diff()
        assert cloud.made == 1

    asyncio.run(run())


def test_an_answer_that_the_api_did_not_give_is_unknown() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, disk(1))
        cloud.after = fails("apply", failure("CreateDisk: request send failed", "dial tcp: i/o timeout"))
        assert (await loop.push()).result is Result.UNKNOWN
        assert cloud.made == 1
        cloud.after = None
        with pytest.raises(StalledError, match="may have created"):
            await loop.diff()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "kind", "word"),
    [
        (failure("ThrottlingException: Rate exceeded"), TransientError, "Rate exceeded"),
        (failure("AccessDeniedException"), StalledError, "permission"),
        (ProviderGoneError("exit code 2: panic"), TransientError, "exit code 2: panic"),
        (failure("dial tcp 127.0.0.1:1: connection refused"), TransientError, "connection refused"),
    ],
)
def test_a_read_that_fails_is_explained(error: Exception, kind: type[LehrError], word: str) -> None:
    cloud = Cloud()
    cloud.before = fails("read", error)
    found = raised(Loop(cloud, queue(1)).diff())
    assert type(found) is kind
    assert word in str(found)
    assert cloud.made == 0


def test_a_provider_that_hangs_is_started_again_and_others_continue() -> None:
    cloud = Cloud()

    async def run() -> None:
        first, second = Loop(cloud, queue(1)), Loop(cloud, network(1))
        second.plugin = first.plugin

        async def hang(call: str, type: str) -> None:
            if call == "read" and type == "cloud_queue":
                await asyncio.sleep(3600)

        cloud.before = hang
        with pytest.raises(TransientError, match="does not answer"):
            await first.diff()
        assert (await second.push()).result is Result.DONE
        cloud.before = None
        await first.applied()
        assert cloud.count("start") == 2
        assert cloud.processes[0].closed

    asyncio.run(run())


def test_one_process_serves_one_configuration_and_another_has_its_own() -> None:
    cloud = Cloud()

    async def run() -> None:
        plugin = plugin_of(cloud)
        asset = network(1)
        for provider in (provider_asset(), provider_asset(), provider_asset(concurrency=3)):
            await plugin.diff(target_of(asset), reader(asset, provider))
        assert cloud.count("start") == 2
        assert cloud.processes[0].config == {"region": "eu-1", "token": TOKEN}
        await plugin.close()
        assert all(process.closed for process in cloud.processes)

    asyncio.run(run())


def test_a_start_that_fails_is_not_tried_for_every_asset() -> None:
    cloud = Cloud()
    cloud.before = fails("start", StalledError("the program has another digest", code="X"))

    async def run() -> None:
        plugin = plugin_of(cloud)
        asset = network(1)

        async def look() -> None:
            with pytest.raises(StalledError, match="another digest"):
                await plugin.diff(target_of(asset), reader(asset))

        await asyncio.gather(*(look() for _ in range(50)))
        assert cloud.count("start") == 1

    asyncio.run(run())


class SteppedClock(SystemClock):
    """A clock that moves when a test moves it."""

    at = 1000.0

    def monotonic(self) -> float:
        return self.at


def test_a_provider_that_ends_at_each_call_is_started_ever_less_often() -> None:
    cloud, clock = Cloud(), SteppedClock()
    cloud.before = fails("read", ProviderGoneError(f"panic: {TOKEN}"))

    async def run() -> None:
        plugin, asset = plugin_of(cloud, clock), queue(1)
        starts = []
        for _minute in range(10):
            before = cloud.count("start")
            for _second in range(60):
                clock.at += 1.0
                with pytest.raises(TransientError) as found:
                    await plugin.diff(target_of(asset), reader(asset))
            starts.append(cloud.count("start") - before)
        assert 10 <= starts[0] <= 16
        assert starts[-1] == 1
        assert "keeps ending" in str(found.value)
        assert "panic" in str(found.value)
        assert TOKEN not in str(found.value)
        cloud.before = None
        clock.at += 61.0
        await plugin.diff(target_of(asset), reader(asset))

    asyncio.run(run())


def test_a_provider_that_ends_once_a_while_or_a_few_times_is_started_again_at_once() -> None:
    cloud, clock = Cloud(), SteppedClock()

    async def run() -> None:
        plugin, asset = plugin_of(cloud, clock), queue(1)
        for turn in range(50):
            for _time in range(10 if turn % 2 else 0):
                cloud.before = fails("read", ProviderGoneError("panic"))
                with pytest.raises(TransientError, match="has ended"):
                    await plugin.diff(target_of(asset), reader(asset))
                cloud.before = None
            await plugin.diff(target_of(asset), reader(asset))
            clock.at += 61.0

    asyncio.run(run())


def test_an_unknown_type_names_others() -> None:
    found = raised(Loop(Cloud(), resource("cloud_quue", {})).diff())
    assert isinstance(found, StalledError)
    assert "has no resource type cloud_quue" in found.what
    assert "cloud_queue" in found.why


def test_a_wrong_configuration_names_all_problems_without_values() -> None:
    config = {"nme": "a", "delay": "${password}"}
    asset = resource("cloud_queue", config, secrets={"password": Secret("env:PASSWORD")})
    found = raised(Loop(Cloud(), asset).diff())
    assert isinstance(found, StalledError)
    assert "nme" in str(found)
    assert "name" in str(found)
    assert "horse" not in str(found)


def test_the_provider_may_refuse_a_configuration() -> None:
    asset = resource("cloud_network", {"range": "10.0.0.0/8", "comment": "refused"})
    found = raised(Loop(Cloud(), asset).diff())
    assert isinstance(found, StalledError)
    assert "comment is refused (at comment)" in found.why


def test_a_handle_of_a_newer_schema_is_not_misread() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, queue(1))
        await loop.applied()
        loop.handle = msgspec.json.encode(replace(parse(loop.handle), schema=2)).decode()
        with pytest.raises(StalledError, match="newer version of its provider"):
            await loop.diff()

    asyncio.run(run())


def test_a_handle_of_an_older_schema_is_upgraded_where_there_is_no_import() -> None:
    cloud = Cloud()

    async def run() -> None:
        asset = resource("cloud_attachment", {"role": "reader", "policy": "all"})
        loop = Loop(cloud, asset)
        await loop.applied()
        block = cloud.schema.resources["cloud_attachment"].block
        types = {**cloud.schema.resources, "cloud_attachment": Schema(3, block)}
        cloud.schema = replace(cloud.schema, resources=types)
        assert (await loop.diff()).empty
        assert cloud.count("upgrade")

    asyncio.run(run())


def test_a_type_without_import_is_found_by_its_handle() -> None:
    cloud = Cloud()

    async def run() -> None:
        asset = resource("cloud_attachment", {"role": "reader", "policy": "all", "note": "a"})
        loop = Loop(cloud, asset)
        await loop.applied()
        loop.restart()
        loop.asset = resource("cloud_attachment", {"role": "reader", "policy": "all", "note": "b"})
        await loop.applied()
        assert cloud.made == 1

    asyncio.run(run())


def test_another_type_or_another_import_does_not_leave_a_resource_behind() -> None:
    cloud = Cloud()

    async def run() -> None:
        other = Loop(cloud, network(2))
        await other.applied()
        loop = Loop(cloud, network(1))
        await loop.applied()
        loop.asset = network(1, import_=parse(other.handle).id)
        with pytest.raises(StalledError, match="names another one"):
            await loop.diff()
        loop.asset = disk(1)
        with pytest.raises(StalledError, match="has the type cloud_disk"):
            await loop.diff()

    asyncio.run(run())


def test_a_type_that_makes_secrets_is_refused_without_a_place_for_them() -> None:
    found = raised(Loop(Cloud(), resource("cloud_key", {"user": "ci"})).diff())
    assert isinstance(found, StalledError)
    assert "makes secrets: secret" in found.what
    assert "born_secrets" in found.fix


def test_a_secret_that_is_made_goes_to_its_file_and_nowhere_else(tmp_path: Any) -> None:
    cloud, path = Cloud(), tmp_path / "key"

    async def run() -> None:
        asset = resource("cloud_key", {"user": "ci"}, born_secrets={"secret": f"file:{path}"})
        loop = Loop(cloud, asset)
        await loop.applied()
        found = await loop.diff()
        secret = path.read_text()
        assert secret == "born-000001-secret"
        assert path.stat().st_mode & 0o777 == 0o600
        assert secret not in loop.handle
        assert secret not in msgspec.json.encode(found).decode()

    asyncio.run(run())


def test_a_secret_that_cannot_be_kept_taints_its_resource(tmp_path: Any) -> None:
    cloud = Cloud()

    async def run() -> None:
        place = f"file:{tmp_path / 'missing' / 'key'}"
        loop = Loop(cloud, resource("cloud_key", {"user": "ci"}, born_secrets={"secret": place}))
        outcome = await loop.push()
        assert outcome.result is Result.STALLED
        assert "cannot be written" in outcome.message
        assert (await loop.diff()).effects.destructive

    asyncio.run(run())


def test_an_unknown_output_is_waited_for_but_not_by_a_turndown() -> None:
    cloud = Cloud()

    async def run() -> None:
        plugin, asset = plugin_of(cloud), queue(1)
        read = reader(asset)
        read.outputs = {}
        with pytest.raises(WaitingError):
            await plugin.diff(target_of(asset), read)
        assert (await plugin.diff(target_of(asset, Goal.ABSENT), read)).empty

    asyncio.run(run())


def test_a_data_source_has_outputs_and_no_differences() -> None:
    async def run() -> None:
        plugin = plugin_of(Cloud())
        found = await plugin.diff(target_of(IDENTITY), reader(IDENTITY))
        assert found.empty
        assert found.outputs == {"id": "4711", "attributes": {"id": "4711", "account": "4711"}}

    asyncio.run(run())


def test_outputs_have_no_secrets() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, queue(1))
        await loop.applied()
        found = await loop.diff()
        assert isinstance(found.outputs, dict)
        assert found.outputs["attributes"]["arn"] == "arn:cloud:orders"
        assert "rule" not in found.outputs["attributes"]
        assert PASSWORD not in str(found.outputs)

    asyncio.run(run())


def test_a_rate_limit_is_kept() -> None:
    class Clock(SystemClock):
        slept = 0.0

        def monotonic(self) -> float:
            return 1000.0 + self.slept

        async def sleep(self, seconds: float) -> None:
            self.slept += seconds

    async def run() -> None:
        clock, cloud, asset = Clock(), Cloud(), network(1)
        await Loop(cloud, asset).applied()
        id = cloud.of("cloud_network")[0]["id"]
        before = cloud.count("read")
        plugin, target = plugin_of(cloud, clock), target_of(network(1, import_=id))
        read = reader(network(1, import_=id), provider_asset(calls_per_second=0.5))
        for _ in range(5):
            await plugin.diff(target, read)
        reads = cloud.count("read") - before
        assert reads >= 5
        assert clock.slept == pytest.approx(2.0 * (reads - 1))

    asyncio.run(run())


def test_a_cancelled_push_ends_what_it_has_begun_and_is_known() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, disk(1))
        begun, go = asyncio.Event(), asyncio.Event()

        async def slow(call: str, type: str) -> None:
            if call == "apply":
                begun.set()
                await go.wait()

        cloud.before = slow
        target = target_of(loop.asset)
        push = push_of(target, "push-1")
        running = asyncio.ensure_future(loop.plugin.push(target, reader(loop.asset), push))
        await begun.wait()
        running.cancel()
        await asyncio.wait({running})
        assert await loop.plugin.status(push.operation) is Progress.RUNNING
        go.set()
        await loop.plugin.close()  # which waits for what was begun
        assert await loop.plugin.status(push.operation) is Progress.ENDED
        loop.lost = "push-1"
        assert (await loop.diff()).empty
        assert parse(loop.handle).id == "disk-000001"

    asyncio.run(run())


@pytest.mark.parametrize("make", [parameter, network, disk], ids=["given name", "tagged", "made-up name"])
def test_killed_in_a_hundred_creations_nothing_is_made_twice(make: Callable[[int], Asset]) -> None:
    """The provider is killed before or after the API has carried out the request; Lehr is, too."""
    counts = []
    for number in range(100):
        cloud = Cloud()

        async def run(cloud: Cloud = cloud, number: int = number) -> None:
            loop = Loop(cloud, make(1))
            error = ProviderGoneError("killed by signal 9")
            if number % 2:
                cloud.after = fails("apply", error)
            else:
                cloud.before = fails("apply", error)
            assert (await loop.push()).result is Result.UNKNOWN
            cloud.after = cloud.before = None
            loop.restart()
            if make is disk:
                with pytest.raises(StalledError, match="may have created"):
                    await loop.diff()
                return
            await loop.diff()
            await loop.applied()
            assert cloud.made == 1

        asyncio.run(run())
        counts.append(cloud.made)
    assert max(counts) == 1


def test_turning_down_forgets_the_handle() -> None:
    cloud = Cloud()

    async def run() -> None:
        loop = Loop(cloud, queue(1))
        await loop.applied()
        found = await loop.diff(Goal.ABSENT)
        assert found.changes[0].path == "resource"
        assert (await loop.push(Goal.ABSENT)).result is Result.DONE
        assert loop.handle == ""
        assert not cloud.resources
        assert (await loop.diff(Goal.ABSENT)).empty

    asyncio.run(run())


def test_the_plugin_names_its_goals() -> None:
    assert TerraformPlugin.traits.goals == {Goal.ABSENT}
