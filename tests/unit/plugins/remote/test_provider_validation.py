"""A provider belongs to the plugin that serves the asset, as far as the deployment says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.provider import PROVIDED_BY, PROVIDER, TYPES, Provider
from lehr.model.types import Registry
from lehr.plugins.remote.provider_validation import does_not_serve
from lehr.sdk.validator import BEYOND_SOURCE, Limits
from lehr.validate import DeltaProposal, MappingPredecessor, validate
from lehr.wiring.remote_plugins import provider_validators

SERVED = {"example.Line": "lines", "example.Bucket": "buckets"}
REGISTRY = Registry(TYPES)


def account(plugin: str = "lines") -> Asset:
    return make_asset(AssetId("accounts/a"), PROVIDER, Provider(plugin=plugin), {})


def provided(type: str = "example.Line", provider: str = "accounts/a") -> Asset:
    return make_asset(AssetId("x"), type, {}, {PROVIDED_BY: {"provider": provider}})


def proposal(after: Iterable[Asset], before: Iterable[Asset] = ()) -> DeltaProposal:
    old, new = ({asset.id: asset for asset in assets} for assets in (before, after))
    every = ((id, old.get(id), new.get(id)) for id in sorted({*old, *new}))
    changes = [AssetChange(*item) for item in every if item[1] != item[2]]
    return DeltaProposal(Partition("test"), REGISTRY, Limits(), changes, MappingPredecessor(old, REGISTRY))


def found(after: Iterable[Asset], before: Iterable[Asset] = ()) -> list[Diagnostic]:
    return [*does_not_serve(proposal(after, before), SERVED)]


def test_a_provider_of_the_plugin_that_serves_the_asset_is_right() -> None:
    assert found([account(), provided()]) == []
    assert found([account()]) == []
    assert found([make_asset(AssetId("x"), "lehr.File", {}, {})]) == []


def test_a_provider_of_another_plugin_is_reported_at_the_addon() -> None:
    [problem] = found([account("buckets"), provided()])
    assert (problem.code, problem.subject) == ("VAL073", "x")
    assert "configures the plugin `buckets`" in problem.what
    assert "`lines`" in problem.why


def test_assets_of_a_provider_that_has_changed_are_judged_again() -> None:
    [problem] = found([account("buckets"), provided()], [account(), provided()])
    assert (problem.code, problem.subject) == ("VAL073", "x")


def test_a_type_that_no_plugin_in_another_process_serves_has_no_provider() -> None:
    [problem] = found([account(), provided("lehr.File")])
    assert (problem.code, problem.subject) == ("VAL072", "x")
    assert "serves lehr.File" in problem.what


def test_a_missing_provider_and_one_of_a_wrong_type_are_reported_once() -> None:
    file = make_asset(AssetId("accounts/a"), "lehr.File", {}, {})
    for after, code in (([provided()], "VAL001"), ([file, provided()], "VAL002")):
        problems = validate(proposal(after), [lambda item: does_not_serve(item, SERVED)])
        assert [problem.code for problem in problems if problem.subject == "x"] == [code]


def test_a_revision_is_judged_again_since_the_file_of_plugins_may_change() -> None:
    assert {"VAL072", "VAL073"} <= BEYOND_SOURCE


def test_the_file_of_plugins_says_which_plugin_serves_a_type(tmp_path: Path) -> None:
    assert provider_validators(None) == ()
    file = tmp_path / "plugins.yaml"
    file.write_text("plugins: {lines: {types: [example.Line], command: [./lines]}}\n")
    [validator] = provider_validators(file)
    codes = [item.code for item in validator(proposal([account("other"), provided()]))]
    assert codes == ["VAL073"]
    file.write_text("plugins: {lines: {}}\n")
    with pytest.raises(StalledError, match="cannot be used"):
        provider_validators(file)
