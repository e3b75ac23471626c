"""The pages about checks: every snippet runs, every example is valid, every field is described."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lehr.base import documents
from lehr.checks import CHECKS, TYPES, calendar, closed_times, freeze, holidays, monitor, rate_limit
from lehr.model.addons import ADDONS, DEPENDS_ON, Rule, VersionNeed
from lehr.model.asset import id_problem
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.plugins.remote.provider_check import ProviderCheck
from lehr.testing.conformance.check_plugin import RULES

DOCS = Path(__file__).resolve().parents[2] / "docs"
REFERENCE = (DOCS / "reference" / "checks.md").read_text()
HOW_TO = (DOCS / "how-to" / "write-a-check.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def described(section: str) -> set[str]:
    """The names in the first column of a section's tables."""
    body = REFERENCE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", body, re.MULTILINE))


def test_the_check_of_the_how_to_keeps_the_contract(tmp_path: Path) -> None:
    for block in blocks(HOW_TO, "python"):
        name = block.partition("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(block)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "."]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{3 * len(RULES)} passed" in done.stdout


@pytest.mark.parametrize("block", blocks(REFERENCE, "yaml"))
def test_every_example_of_the_reference_is_valid(block: str) -> None:
    payloads = {item.name: item.payload for item in TYPES}
    loaded = documents.load("example.yaml", block.encode())
    assert not loaded.diagnostics
    for document in loaded.documents:
        assert document.value.keys() <= {"id", "type", "payload", "addons"}
        assert id_problem(document.value["id"]) is None
        if (kind := payloads.get(document.value["type"])) is not None:
            msgspec.convert(document.value["payload"], kind)
        for name, addon in document.value.get("addons", {}).items():
            msgspec.convert(addon, ADDONS[name])


def test_every_type_has_an_example() -> None:
    examples = "".join(blocks(REFERENCE, "yaml"))
    assert all(f"type: {item.name}\n" in examples for item in TYPES)
    assert DEPENDS_ON in examples


@pytest.mark.parametrize(
    ("section", "kinds", "reasons"),
    [
        ("Selecting assets", [Selector], []),
        ("freeze", [freeze.Freeze], [Reason.FROZEN]),
        (
            "calendar",
            [calendar.Calendar, calendar.Window, closed_times.ClosedTime, holidays.Holidays],
            [Reason.OUTSIDE_WINDOW, Reason.OVERRIDDEN],
        ),
        (
            "depends-on",
            [ADDONS[DEPENDS_ON], VersionNeed, Rule],
            [
                Reason.DEPENDENCY_MISSING,
                Reason.DEPENDENCY_UNREADABLE,
                Reason.TOO_MANY_DEPENDENCIES,
                Reason.DEPENDENCY_DIFFERS,
                Reason.CAPACITY_ORDER,
                Reason.VERSION_ORDER,
                Reason.RULE_NOT_MET,
            ],
        ),
        ("monitor", [monitor.Monitor], [Reason.MONITOR_HOLDS, Reason.MONITOR_UNKNOWN]),
        ("rate", [rate_limit.RateLimit], [Reason.RATE_LIMITED]),
    ],
)
def test_every_field_and_reason_is_described_and_no_other(
    section: str, kinds: list[type[msgspec.Struct]], reasons: list[str]
) -> None:
    fields = {field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)}
    assert described(section) == fields | set(reasons)


def test_every_check_has_a_section_and_a_row_in_the_table_of_checks() -> None:
    names = {ProviderCheck.name, *(check.name for check in CHECKS)}
    assert set(re.findall(r"^## ([a-z-]+)$", REFERENCE, re.MULTILINE)) == names
    assert set(re.findall(r"^\| \[`([a-z-]+)`\]\(#", REFERENCE, re.MULTILINE)) == names
