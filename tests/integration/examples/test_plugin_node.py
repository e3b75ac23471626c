"""The example of a plugin in Node keeps all rules of plugins, and passes its own tests."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from lehr.testing.conformance.asset_plugin import RULES, Rule
from lehr.testing.plugin_fixtures import Fixtures, PluginUnderTest, Result
from tests.node import EXAMPLE, example_in, node_modules, node_program


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example_in(tmp_path_factory.mktemp("node"))


def fixtures(name: str) -> Fixtures:
    content = (EXAMPLE / "fixtures" / name / "test.yaml").read_text()
    return msgspec.convert(yaml.safe_load(content), Fixtures)


async def result(plugin: PluginUnderTest, rule: Rule) -> Result:
    found = [found async for found in plugin.results([rule])]
    return found[0]


@pytest.mark.parametrize("name", ["plain", "password"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_plugin_keeps_the_contract(rule: Rule, name: str, example: Path) -> None:
    plugin = PluginUnderTest((node_program(), str(example / "plugin.js")), fixtures(name))
    found = asyncio.run(result(plugin, rule))
    assert not found.broken, (found.broken, found.log)


def test_its_own_tests_pass(example: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{node_program()} --test test/*.test.js"],
        cwd=example,
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_lock_names_packages_by_digest_and_no_place() -> None:
    text = (EXAMPLE / "package-lock.json").read_text()
    assert '"resolved"' not in text
    assert text.count('"integrity"') == text.count('"node_modules/')


def test_the_bench_reports_its_figures() -> None:
    node_modules()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.plugin_in_node", "20"], capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["figure"] for line in lines] == ["alone", "at_once", "batches"]
    for line in lines:
        assert {"figure", "value", "unit", "size", "machine", "peer"} <= line.keys()
        assert line["value"] > 0
