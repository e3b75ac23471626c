"""The plugin of Terraform resources over a program: contract, crashes, and wrong programs."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Goal
from lehr.model.operation import Result
from lehr.model.secret import Secret
from lehr.plugins.terraform.handle import parse
from lehr.plugins.terraform.launch import Launcher
from lehr.plugins.terraform.payload import TERRAFORM_PROVIDER, TerraformProvider
from lehr.plugins.terraform.plugin import TerraformPlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, push_of, target_of
from lehr.validate.secrets import secrets_in
from tests.terraform import fake
from tests.terraform.assets import PASSWORD, REGISTRY, SECRETS, TOKEN, resource
from tests.terraform.aws import sha256
from tests.terraform.fake_store import Store

# Each starts a program several times. A handle that is found again has other private bytes here, as with most
# real providers: `test_terraform_contract` has that rule.
CHOSEN = (
    "push_converges",
    "disturbance_is_seen_and_healed",
    "known_goals_are_reached_and_taken_back",
    "a_handle_lasts",
    "outputs_may_be_kept",
    "secrets_are_not_shown",
)


def provider(folder: Path, protocol: int = 6, **more: Any) -> Asset:
    program = fake.binary(folder)
    config = {"store": str(folder / "store"), "token": "${token}", **more.pop("config", {})}
    payload = TerraformProvider(
        path=str(program),
        sha256=more.pop("sha256", sha256(program)),
        config=config,
        secrets={"token": Secret("env:TOKEN")},
        environment={"FAKE_PROTOCOL": str(protocol), **more.pop("environment", {})},
        calls_per_second=1000,
        **more,
    )
    return make_asset(AssetId("cloud/provider"), TERRAFORM_PROVIDER, payload, {})


def given(size: int) -> Asset:
    config = {"name": "lamp", "size": size, "labels": ["b", "a"], "force": True, "text": "a ${password}"}
    return resource("fake_given", config, secrets={"password": Secret("env:PASSWORD")}, import_="lamp")


def plugin_of(folder: Path) -> TerraformPlugin:
    return TerraformPlugin(
        SystemClock(),
        Launcher(folder, Inline(), SystemClock()).start,
        Inline(),
        secrets=SECRETS,
        secrets_in=secrets_in,
        settle_seconds=5.0,
        visible_seconds=0.0,
        linger_seconds=0.0,
    )


@pytest.mark.parametrize("protocol", [5, 6])
@pytest.mark.parametrize("name", CHOSEN)
def test_keeps_the_contract_over_a_program(name: str, protocol: int, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    [rule] = [found for found in RULES if found.__name__ == name]
    chosen: Rule = rule
    subject = Subject(
        make=lambda: plugin_of(tmp_path),
        registry=REGISTRY,
        asset=given(1),
        changed=given(2),
        disturb=lambda: store.change("fake_given", "lamp", size=1000),
        observe=lambda: {id: store.get("fake_given", id) for id in store.ids("fake_given")},
        others=(provider(tmp_path, protocol),),
        secret=TOKEN,
        interruptions=2,
    )
    asyncio.run(chosen(subject))
    assert all("horse" not in text for text in subject.shown)


def test_a_program_with_another_digest_is_not_started(tmp_path: Path) -> None:
    async def run() -> None:
        plugin, asset = plugin_of(tmp_path), given(1)
        read = FixedReader([asset, provider(tmp_path, sha256="0" * 64)], REGISTRY)
        with pytest.raises(StalledError, match="digest"):
            await plugin.diff(target_of(asset), read)
        await plugin.close()

    asyncio.run(run())
    assert not (tmp_path / "store").exists()


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        plugin, asset, other = plugin_of(tmp_path), given(1), provider(tmp_path)
        (tmp_path / "terraform-provider-fake").unlink()
        with pytest.raises(StalledError, match="terraform-provider-fake"):
            await plugin.diff(target_of(asset), FixedReader([asset, other], REGISTRY))
        await plugin.close()

    asyncio.run(run())


def test_a_wrong_configuration_of_a_provider_is_named_without_secrets(tmp_path: Path) -> None:
    async def run() -> None:
        plugin, asset = plugin_of(tmp_path), given(1)
        read = FixedReader([asset, provider(tmp_path, config={"stroe": "${token}"})], REGISTRY)
        with pytest.raises(StalledError) as found:
            await plugin.diff(target_of(asset), read)
        assert "stroe" in str(found.value)
        assert TOKEN not in str(found.value)
        await plugin.close()

    asyncio.run(run())


def test_a_killed_program_is_started_again_and_nothing_is_made_twice(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")

    async def run() -> None:
        plugin = plugin_of(tmp_path)
        asset = resource("fake_made", {"name": "lamp", "size": 1})
        others = [provider(tmp_path, config={"bad_days": {"ApplyResourceChange": "crash_after"}})]
        target = target_of(asset)
        outcome = await plugin.push(
            target, FixedReader([asset, *others], REGISTRY), push_of(target, "push-1")
        )
        assert outcome.result is Result.UNKNOWN
        assert len(store.ids("fake_made")) == 1
        calm = FixedReader([asset, provider(tmp_path)], REGISTRY)
        with pytest.raises(StalledError, match="may have created"):
            await plugin.diff(replace(target, lost="push-1"), calm)
        [id] = store.ids("fake_made")
        adopted = resource("fake_made", {"name": "lamp", "size": 1}, import_=id)
        found = await plugin.diff(
            replace(target_of(adopted), lost="push-1"),
            FixedReader([adopted, provider(tmp_path)], REGISTRY),
        )
        assert found.empty
        assert isinstance(found.handle, str)
        assert parse(found.handle).id == id
        await plugin.close()

    asyncio.run(run())
    assert len(store.ids("fake_made")) == 1


def test_a_program_that_is_killed_between_looks_is_started_again(tmp_path: Path) -> None:
    async def run() -> None:
        plugin, asset = plugin_of(tmp_path), given(1)
        read = FixedReader([asset, provider(tmp_path)], REGISTRY)
        await plugin.diff(target_of(asset), read)
        process = int((tmp_path / "store" / "pid").read_text())
        os.kill(process, signal.SIGKILL)
        for _ in range(3):
            try:
                assert not (await plugin.diff(target_of(asset), read)).empty
            except TransientError:
                continue
            break
        else:
            pytest.fail("it is not started again")
        assert int((tmp_path / "store" / "pid").read_text()) != process
        await plugin.close()

    asyncio.run(run())


def test_what_only_an_apply_gets_is_in_no_state_and_no_handle(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")

    async def run() -> None:
        plugin = plugin_of(tmp_path)

        def asset(version: int) -> Asset:
            return resource(
                "fake_secret",
                {"name": "it", "value_wo": "${password}", "value_wo_version": version},
                secrets={"password": Secret("env:PASSWORD")},
                born_secrets={"generated": "discard"},
                import_="it",
            )

        handle = ""
        for version in (1, 2):
            target = replace(target_of(asset(version)), handle=handle)
            read = FixedReader([asset(version), provider(tmp_path)], REGISTRY)
            outcome = await plugin.push(target, read, push_of(target, f"push-{version}"))
            assert outcome.result is Result.DONE, outcome
            assert isinstance(outcome.handle, str)
            handle = outcome.handle
            found = await plugin.diff(replace(target, handle=handle), read)
            assert found.empty
            assert "horse" not in f"{handle} {found}"
        shown = store.get("fake_secret", "it")
        assert shown is not None
        assert shown["sent"] == PASSWORD
        gone = await plugin.push(
            replace(target_of(asset(2), Goal.ABSENT), handle=handle),
            FixedReader([asset(2), provider(tmp_path)], REGISTRY),
            push_of(target_of(asset(2), Goal.ABSENT), "push-3"),
        )
        assert gone.result is Result.DONE
        await plugin.close()

    asyncio.run(run())
    assert store.ids("fake_secret") == []
