"""The rules of asset plugins, for a plugin in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.testing.conformance.asset_plugin import RULES, Subject
from lehr.testing.conformance.asset_plugin.subject import Rule
from lehr.testing.plugins import FixedSecrets
from tests.integration.plugins.remote.line_plugin import TYPES, Line
from tests.integration.plugins.remote.managed import line_plugin

BATCHING = [rule for rule in RULES if rule.__name__ == "many_diffs_are_those_of_one_by_one"]


@pytest.mark.parametrize("rule", BATCHING, ids=lambda rule: rule.__name__)
def test_a_remote_plugin_that_compares_many_keeps_the_contract(rule: Rule, tmp_path: Path) -> None:
    hold(rule, tmp_path, "batching")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_remote_plugin_keeps_the_contract(rule: Rule, tmp_path: Path) -> None:
    hold(rule, tmp_path)


def hold(rule: Rule, tmp_path: Path, *arguments: str) -> None:
    path, log = tmp_path / "production" / "motd", list[str]()
    path.parent.mkdir()

    def asset(text: str) -> Asset:
        line = Line(str(path), text, Secret("env:PASSWORD"), other="suffix", size_of="suffix")
        return make_asset(AssetId("motd"), "example.Line", line, {})

    def disturb() -> None:
        path.write_text("edited by hand\n")

    @contextlib.contextmanager
    def in_the_way() -> Iterator[None]:
        aside = tmp_path / "aside"
        path.rename(aside)
        path.mkdir()
        yield
        path.rmdir()
        aside.rename(path)

    subject = Subject(
        make=lambda: line_plugin(log, FixedSecrets({"env:PASSWORD": "hunter22"}), *arguments),
        registry=Registry(TYPES),
        asset=asset("the password is "),
        changed=asset("the password was "),
        others=(make_asset(AssetId("suffix"), "example.Line", Line("/nowhere", "!"), {}),),
        outputs={"suffix": {"size": 7}},
        disturb=disturb,
        observe=lambda: {item.name: item.read_bytes() for item in path.parent.iterdir() if item.is_file()},
        secret="hunter22",
        troubles=(in_the_way,),
        query=(str(path.parent),),
        interruptions=3,
        linger=0.05,
    )
    asyncio.run(rule(subject))
