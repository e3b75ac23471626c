"""A provider over its protocol, in both versions: the fake one, as a process."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.plugins.plugin_process import PluginProcesses
from lehr.plugins.terraform.kept_schemas import KeptSchemas
from lehr.plugins.terraform.launch import SchemasInThreads
from lehr.plugins.terraform.provider import UNKNOWN, Diagnostic, ProviderError, Severity, State
from lehr.plugins.terraform.wire.starting import Providers, less_logs
from lehr.sdk.secrets import Hidden, SecretValue
from tests.integration.plugins.terraform.running import NOTHING, Running, config, made, planned


@pytest.fixture(params=[5, 6], ids=["version 5", "version 6"])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Running:
    return Running(tmp_path, request.param)


def test_a_resource_is_created_read_changed_and_deleted(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            written = {"name": "a", "text": "t", "labels": ["y", "x"], "tags": {"k": "v"}, "size": "3"}
            plan = await planned(provider, "fake_given", NOTHING, written)
            assert (plan.value["id"], plan.value["class"], plan.value["size"]) == (UNKNOWN, "standard", 3)
            state = await made(provider, "fake_given", written)
            assert (state.value["id"], state.value["labels"]) == ("a", ["x", "y"])
            assert running.store.get("fake_given", "a") == {
                name: value for name, value in state.value.items() if name != "force"
            }
            assert await provider.read_resource("fake_given", state) == state
            assert (await planned(provider, "fake_given", state, written)).value == state.value

            running.store.change("fake_given", "a", text="by hand")
            seen = await provider.read_resource("fake_given", state)
            plan = await planned(provider, "fake_given", seen, written)
            assert (plan.value["text"], plan.value["etag"], plan.replaces) == ("t", UNKNOWN, ())
            state = await made(provider, "fake_given", written, seen)
            assert state.value["text"] == "t"

            assert (await planned(provider, "fake_given", state, {"name": "b"})).replaces == (("name",),)
            assert (await made(provider, "fake_given", None, state)).value is None
            assert (await provider.read_resource("fake_given", state)).value is None

    asyncio.run(scenario())


def test_private_bytes_come_back_to_the_provider(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            state = await made(provider, "fake_given", {"name": "a"})
            assert state.private == b'{"planned": true}'
            read = await provider.read_resource("fake_given", State(state.value, b"mine"))
            assert read.private == b"mine"
            assert (await planned(provider, "fake_given", read, {"name": "a"})).private == b"mine"

    asyncio.run(scenario())


def test_an_id_may_be_the_providers(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            one = await made(provider, "fake_made", {"name": "n", "tags": {"lehr": "x"}})
            two = await made(provider, "fake_made", {"name": "n"})
            assert one.value["id"] != two.value["id"]
            data = await provider.read_data_source("fake_search", {"tag": "lehr", "ids": None})
            assert data["ids"] == [one.value["id"]]

    asyncio.run(scenario())


def test_an_import_has_the_id_and_reading_the_rest(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            state = await made(provider, "fake_given", {"name": "a", "text": "t", "force": True})
            imported = await provider.import_resource("fake_given", "a")
            assert {name for name, value in imported.value.items() if value is not None} == {"id"}
            read = await provider.read_resource("fake_given", imported)
            assert read.value == state.value | {"force": None}  # which no API shows
            with pytest.raises(ProviderError, match="there is no such resource"):
                await provider.import_resource("fake_given", "b")

    asyncio.run(scenario())


def test_blocks_of_every_nesting_and_values_of_every_type(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            rule = {"port": 1, "part": [{"host": "h"}, {"host": "g", "zone": "z"}]}
            written = {
                "name": "a",
                "only": rule,
                "step": [rule, {"port": 2}],
                "rule": [{"port": 3}, {"port": 4, "part": [{"host": "g", "zone": "z"}]}],
            }
            written |= {"keyed": {"k": rule}, "options": {"x": 0.5}}
            state = await made(provider, "fake_blocks", written)
            assert (await planned(provider, "fake_blocks", state, written)).value == state.value
            assert state.value["step"][0]["part"][0] == {"host": "g", "zone": "z"}
            values = {
                "name": "a",
                "any": {"list": [1, "x", None], "deep": {"number": 0.1}},
                "pair": ["x", 10**30],
                "objects": [{"a": "x"}],
                "object_set": [{"a": "y", "b": ["z"]}, {"a": "x"}],
                "numbers": {"tenth": 0.1, "half": 0.5, "big": 2**70},
            }
            state = await made(provider, "fake_types", values)
            assert state.value["any"] == values["any"]
            assert state.value["pair"] == ["x", 10**30]
            assert state.value["numbers"] == values["numbers"]
            assert (await planned(provider, "fake_types", state, values)).value == state.value

    asyncio.run(scenario())


def test_nested_attributes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Running(tmp_path).started() as provider:
            item = {"name": "x", "inner": {"a": "1"}}
            written = {
                "name": "a",
                "single": item,
                "list": [item],
                "set": [item, {"size": 2}],
                "map": {"k": item},
            }
            state = await made(provider, "fake_nested", written)
            assert state.value["single"]["inner"]["b"].startswith("made-b-")
            assert (await planned(provider, "fake_nested", state, written)).value == state.value

    asyncio.run(scenario())


def test_what_is_only_written_is_in_no_state(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            written = {"name": "a", "value": "s3cret", "value_wo": "t0p", "value_wo_version": 1}
            plan = await planned(provider, "fake_secret", NOTHING, written)
            assert "t0p" not in repr(plan)
            state = await made(provider, "fake_secret", written)
            assert "t0p" not in repr(state)
            shown = running.store.get("fake_secret", "a")
            assert shown is not None
            assert shown["sent"] == "t0p"

    asyncio.run(scenario())


def test_validation_finds_errors_and_warnings(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            value = config(provider, "fake_given", {"name": "a", "size": -1, "text": "odd"})
            assert await provider.validate_resource("fake_given", value) == (
                Diagnostic(Severity.ERROR, "size too small", "-1 is less than 0", ("size",)),
                Diagnostic(Severity.WARNING, "odd text", "", ("text",)),
            )

    asyncio.run(scenario())


def test_a_configuration_without_problems_is_validated_once_in_each_process(running: Running) -> None:
    async def scenario() -> list[int]:
        async def validate(size: int, type: str = "fake_given") -> int:
            value = config(provider, type, {"name": "a", "size": size})
            await provider.validate_resource(type, value)
            return running.calls().count("ValidateResourceConfig")

        async with running.started() as provider:
            found = [await validate(size) for size in (1, 1, 2, 1, -1, -1)]
        async with running.started() as provider:
            return [*found, await validate(1)]

    assert asyncio.run(scenario()) == [1, 1, 2, 2, 3, 4, 5]


def test_no_diagnostic_has_a_sensitive_value(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            value = config(provider, "fake_secret", {"name": "a", "value": "bad s3cret"})
            found = await provider.validate_resource("fake_secret", value)
            assert found == (Diagnostic(Severity.ERROR, "bad value", "(sensitive)", ("value",)),)

    asyncio.run(scenario())


def test_an_apply_may_leave_a_state_and_errors(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            written = {"name": "a", "fail": True}
            plan = await planned(provider, "fake_tainted", NOTHING, written)
            value = config(provider, "fake_tainted", written)
            applied = await provider.apply("fake_tainted", NOTHING, plan, value)
            assert applied.state.value["id"] == "a"
            assert [one.summary for one in applied.diagnostics] == ["half of it failed"]

    asyncio.run(scenario())


def test_a_deletion_may_be_refused_when_planned(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            assert provider.schema.plan_destroy
            state = await made(provider, "fake_given", {"name": "a", "protected": True})
            with pytest.raises(ProviderError) as caught:
                await planned(provider, "fake_given", state, None)
            assert caught.value.diagnostics[0].path == ("protected",)
        async with running.started(program=running.program(FAKE_PLAN_DESTROY="no")) as provider:
            assert not provider.schema.plan_destroy

    asyncio.run(scenario())


def test_a_state_of_an_older_schema_is_upgraded(running: Running) -> None:
    async def scenario() -> None:
        async with running.started(program=running.program(FAKE_SCHEMA_VERSION="2")) as provider:
            assert provider.schema.resources["fake_given"].version == 2
            upgraded = await provider.upgrade_state(
                "fake_given", 1, b'{"id": "a", "name": "a", "title": "t"}'
            )
            assert (upgraded["text"], upgraded["name"], upgraded["class"]) == ("t", "a", None)

    asyncio.run(scenario())


def test_a_data_source_is_read(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            await made(provider, "fake_given", {"name": "a", "text": "t"})
            asked = {"name": "a", "text": None, "exists": None}
            assert await provider.read_data_source("fake_lookup", asked) == {
                "name": "a",
                "text": "t",
                "exists": True,
            }

    asyncio.run(scenario())


def test_what_the_provider_does_not_have_is_an_error(running: Running) -> None:
    async def scenario() -> None:
        async with running.started() as provider:
            assert "fake_nothing" not in provider.schema.resources
            assert ("fake_nested" in provider.schema.resources) is (running.protocol == 6)
            with pytest.raises(ProviderError, match="does not have fake_nothing"):
                await provider.import_resource("fake_nothing", "a")
            with pytest.raises(ProviderError, match="does not have fake_given"):
                await provider.read_data_source("fake_given", {})

    asyncio.run(scenario())


def test_a_refused_configuration_does_not_show_its_secrets(running: Running) -> None:
    async def scenario() -> None:
        with pytest.raises(ProviderError) as caught:
            await running.start(token="wrong")
        assert caught.value.diagnostics[0].summary == "no access"
        assert "wrong" not in repr(caught.value.diagnostics)

    asyncio.run(scenario())


def test_schemas_are_asked_for_once_per_digest_if_the_provider_allows_that(running: Running) -> None:
    digest = hashlib.sha256(Path(running.program().arguments[0]).read_bytes()).hexdigest()

    async def scenario() -> int:
        for optional in ("no", "no", "yes", "yes", "yes"):
            program = running.program(FAKE_SCHEMA_OPTIONAL=optional)._replace(sha256=digest)
            async with running.started(program=program) as provider:
                assert (await made(provider, "fake_given", {"name": "a"})).value["id"] == "a"
        return running.calls().count("GetProviderSchema")

    assert asyncio.run(scenario()) == 3


@pytest.mark.parametrize(("optional", "asked"), [("yes", 1), ("no", 2)])
def test_schemas_that_were_kept_are_not_asked_for_again_if_the_provider_allows_that(
    running: Running, optional: str, asked: int
) -> None:
    digest = hashlib.sha256(Path(running.program().arguments[0]).read_bytes()).hexdigest()

    async def scenario() -> int:
        for _process in range(2):
            kept = SchemasInThreads(KeptSchemas(running.folder / "schemas"), Inline())
            running.providers = Providers(PluginProcesses(Inline(), SystemClock()), kept)
            program = running.program(FAKE_SCHEMA_OPTIONAL=optional)._replace(sha256=digest)
            async with running.started(program=program) as provider:
                assert (await made(provider, "fake_given", {"name": "a"})).value["id"] == "a"
        return running.calls().count("GetProviderSchema")

    assert asyncio.run(scenario()) == asked


def test_what_it_prints_is_logged_without_secrets(running: Running) -> None:
    async def scenario() -> None:
        hidden = Hidden([SecretValue(b"connection")])
        async with running.started(hidden=hidden) as provider:
            await made(provider, "fake_given", {"name": "a"})
        assert running.lines == ["over the [secret]"]

    asyncio.run(scenario())


def test_a_provider_logs_neither_its_requests_nor_those_of_its_libraries() -> None:
    found = less_logs("/opt/terraform-provider-google-beta_v6.1.0_x5")
    assert found == {"TF_LOG_SDK": "off", "TF_LOG_PROVIDER": "error", "TF_LOG_PROVIDER_GOOGLE_BETA": "error"}
    assert less_logs("/opt/providers/other") == {"TF_LOG_SDK": "off", "TF_LOG_PROVIDER": "error"}
