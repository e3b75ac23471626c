"""The page on plugins in other languages is run, and describes all fields of fixtures."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from lehr.plugins.remote import messages as m
from lehr.testing.conformance.asset_plugin import RULES
from lehr.testing.plugin_fixtures import Fixtures
from tests.docs.test_tutorials import ROOT, run
from tests.node import node_modules, node_program

GUIDE = (ROOT / "docs/how-to/write-a-plugin-in-another-language.md").read_text()
STARTER = ROOT / "examples/plugin-starters/node"


def test_the_guide_is_run(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "node").symlink_to(node_program())
    # The packages are those of the lock file, as `npm ci` would install them.
    modules = node_modules(STARTER / "package-lock.json")
    (tmp_path / "npm").write_text(f'#!/bin/sh\n[ "$*" = ci ] && exec ln -s "{modules}" node_modules\n')
    (tmp_path / "npm").chmod(0o755)
    # tests/integration/cli/test_plugin_new.py checks all rules.
    printed = run(GUIDE.replace("--fixtures fixtures\n", "--fixtures fixtures --rule push_converges\n"), here)
    for shown in ("ok      push_converges", "0 broken", "Good morning"):
        assert shown in printed
    assert "Good morning" in (here / "shop/production/greeting").read_text()


def test_the_code_of_the_page_is_that_of_the_starter() -> None:
    [shown] = re.findall(r"^```js\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    assert shown in (STARTER / "plugin.js").read_text()


def test_every_field_of_fixtures_is_described_with_its_default() -> None:
    rows = dict(re.findall(r"^\| (`[a-z]+`(?:, `[a-z]+`)?) \| ([^|]*) \|", GUIDE, re.MULTILINE))
    described = {name: default for names, default in rows.items() for name in re.findall("[a-z]+", names)}
    for field in msgspec.structs.fields(Fixtures):
        default = described[field.encode_name]
        assert (default == "required") == field.required, field.name
        if isinstance(field.default, int | float):
            assert default == f"{field.default:g}", field.name


def test_every_call_of_the_protocol_that_plugins_answer_is_described() -> None:
    [service] = m.DescribeRequest.DESCRIPTOR.file.services_by_name.values()
    described = {*re.findall(r"^\| `([A-Z]\w+)` \|", GUIDE, re.MULTILINE)}
    assert described == {method.name for method in service.methods} - {"Select"}
    assert "push_converges" in {rule.__name__ for rule in RULES}
