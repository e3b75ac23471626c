"""As many pushes of a provider start as its `concurrency` allows; no push waits in the plugin."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.decision import Reservation, Verdict
from lehr.model.provider import PROVIDED_BY, PROVIDER, TYPES, Provider
from lehr.model.reason import Reason
from lehr.model.types import Registry
from lehr.plugins.remote.provider_check import ProviderCheck
from lehr.testing.checks import FixedCheckReader, check_request
from lehr.testing.conformance.check_plugin import RULES, Rule, Subject
from lehr.wiring.deployment import Deployment
from lehr.wiring.remote_plugins import remote_checks, remote_plugins

REGISTRY = Registry(TYPES)
LINE = make_asset(AssetId("x"), "example.Line", {}, {PROVIDED_BY: {"provider": "accounts/a"}})
PLAIN = make_asset(AssetId("x"), "example.Line", {}, {})


def account(**limits: Any) -> Asset:
    return make_asset(AssetId("accounts/a"), PROVIDER, Provider(plugin="lines", **limits), {})


def reader(provider: Asset | None, under_way: int = 0) -> FixedCheckReader:
    usages = {"provider/accounts/a": (under_way, None)}
    return FixedCheckReader(REGISTRY, assets=[provider] if provider else [], usages=usages)


def verdicts(asset: Asset, read: FixedCheckReader) -> list[Verdict]:
    return asyncio.run(ProviderCheck().check(check_request(asset), read))


CASES = [
    pytest.param(LINE, account(concurrency=2), 1, True, id="room"),
    pytest.param(LINE, account(concurrency=2), 2, False, id="busy"),
    pytest.param(LINE, account(rate=1.0), 2, None, id="no-concurrency"),
    pytest.param(PLAIN, account(concurrency=2), 2, None, id="no-provider"),
]


@pytest.mark.parametrize(("asset", "provider", "under_way", "allows"), CASES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_it_keeps_the_contract(
    rule: Rule, asset: Asset, provider: Asset, under_way: int, allows: bool | None
) -> None:
    read = reader(provider, under_way)
    asyncio.run(rule(Subject(ProviderCheck, check_request(asset), read, allows, governed=False)))


def test_each_push_takes_a_share_until_it_ends() -> None:
    [verdict] = verdicts(LINE, reader(account(concurrency=2), 1))
    assert verdict.reservations == (Reservation("provider/accounts/a", 2, None),)


def test_a_push_that_waits_knows_why_and_asks_again() -> None:
    request = check_request(LINE)
    [verdict] = verdicts(LINE, reader(account(concurrency=1), 1))
    assert verdict.reason == Reason.PROVIDER_BUSY
    assert "accounts/a allows 1 push at the same time" in verdict.message
    assert verdict.until is not None
    assert request.now + 3 <= verdict.until <= request.now + 7


@pytest.mark.parametrize("provider", [None, make_asset(AssetId("accounts/a"), "lehr.File", {}, {})])
def test_a_provider_that_cannot_be_used_is_left_to_the_comparison(provider: Asset | None) -> None:
    assert verdicts(LINE, reader(provider)) == []


def test_it_is_there_where_plugins_in_other_processes_serve_types(tmp_path: Path) -> None:
    def checks_with(plugin: str) -> list[str]:
        file = tmp_path / "plugins.yaml"
        file.write_text(f"plugins: {{lines: {{{plugin}, address: 'unix:/nowhere'}}}}\n")
        deployment = Deployment(location=".", state=tmp_path / "state", base=tmp_path, plugins=file)
        return [check.name for check in remote_checks(remote_plugins(deployment, ()), ())]

    assert checks_with("types: [example.Line]") == ["provider"]
    assert checks_with("checks: [on-call]") == ["on-call"]
    with pytest.raises(StalledError, match="cannot answer the check provider"):
        checks_with("types: [example.Line], checks: [provider]")
