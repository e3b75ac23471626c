"""The figures of Terraform providers, by program and never by asset."""

from __future__ import annotations

import asyncio
from typing import Any

from lehr.base.clock import SystemClock
from lehr.plugins.terraform.payload import TerraformProvider
from lehr.plugins.terraform.provider import ProviderGoneError
from lehr.plugins.terraform.providers import Providers
from lehr.sdk.plugin_meter import PluginMeter
from lehr.testing.plugins import push_of, target_of
from tests.terraform.assets import ID, parameter, plugin_of, reader
from tests.terraform.cloud import Cloud, failure


def outcomes(meter: PluginMeter, method: str) -> dict[str, int]:
    return {outcome: count for (name, outcome), count in meter.calls.items() if name == method}


def test_calls_are_counted_by_outcome_and_a_provider_that_ended_is_not_up() -> None:
    cloud = Cloud()
    errors: list[Exception | None] = [None, failure("denied"), ProviderGoneError("crashed"), None]

    async def fail(call: str, _type: str) -> None:
        if call == "read" and (error := errors.pop(0)) is not None:
            raise error

    async def scenario() -> None:
        cloud.before = fail
        plugin, asset = plugin_of(cloud), parameter(1)
        states = []
        for _diff in range(4):
            await asyncio.gather(plugin.diff(target_of(asset), reader(asset)), return_exceptions=True)
            [meter] = plugin.meters()
            states.append((meter.starts, meter.ends, meter.up))
        assert states == [(1, 0, True), (1, 0, True), (1, 1, False), (2, 1, True)]
        assert outcomes(meter, "read_resource") == {"ok": 2, "refused": 1, "lost": 1}
        assert outcomes(meter, "plan") == {"ok": 2}
        cloud.before = None
        await plugin.push(target_of(asset), reader(asset), push_of(target_of(asset)))
        assert outcomes(meter, "apply") == {"ok": 1}
        assert meter.name == "terraform-provider"
        assert str(ID) not in f"{meter.calls}{meter.seconds}"
        await plugin.close()
        [meter] = plugin.meters()
        assert (meter.ends, meter.up) == (1, None)

    asyncio.run(scenario())


def test_a_provider_that_cannot_be_started_is_not_up() -> None:
    cloud = Cloud()

    async def fail(call: str, _type: str) -> None:
        if call == "start":
            raise ProviderGoneError("crashed")

    async def scenario() -> None:
        cloud.before = fail
        plugin, asset = plugin_of(cloud), parameter(1)
        await asyncio.gather(plugin.diff(target_of(asset), reader(asset)), return_exceptions=True)
        [meter] = plugin.meters()
        assert (meter.starts, meter.ends, meter.up) == (0, 0, False)

    asyncio.run(scenario())


def test_configurations_of_one_program_count_together_and_programs_are_bounded() -> None:
    async def start(*_arguments: Any) -> Any:
        return object()

    async def scenario() -> list[PluginMeter]:
        providers = Providers(SystemClock(), start)
        for number in range(70):
            for region in ("a", "b"):
                path = f"/opt/terraform-provider-p{number}_v5.{number}.0_x5"
                payload = TerraformProvider(path=path, sha256="0" * 64, config={"region": region})
                async with providers.use(payload, {}):
                    pass
        return list(providers.meters())

    found = asyncio.run(scenario())
    assert len(found) == 51
    by_name = {meter.name: meter for meter in found}
    assert by_name["terraform-provider-p7"].starts == 2
    assert by_name["Other"].starts == 40
    assert by_name["Other"].up
