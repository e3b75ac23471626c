"""Reasons: one list, used everywhere, and a page that says what it says."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from lehr.model.decision import Status
from lehr.model.reason import Reason

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "lehr"
_LIST = SRC / "model" / "reason.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = script().PAGES


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SRC.rglob("*.py")):
        yield path, ast.parse(path.read_text())


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_source_says(name: str) -> None:
    text = (ROOT / "docs" / "reference" / name).read_text()
    assert text == PAGES[name](), "write it again with scripts/reference.py"


def test_every_reason_is_given_somewhere() -> None:
    used = {
        node.attr
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason"
    }
    assert {reason.name for reason in Reason} - used == set()


def test_no_reason_is_written_as_a_string() -> None:
    reasons = {str(reason) for reason in Reason} - {str(status) for status in Status}
    assert not [
        f"{path.relative_to(SRC)}:{node.lineno}: {node.value}"
        for path, tree in trees()
        if path != _LIST
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in reasons
    ]


def test_every_reason_says_what_it_means_and_in_one_line() -> None:
    for reason in Reason:
        assert reason.meaning.endswith(".")
        assert "\n" not in reason.meaning + reason.unblock
        assert not reason.unblock or reason.unblock.endswith(".")


def test_a_reason_is_its_text() -> None:
    assert Reason("Frozen") is Reason.FROZEN
    assert hash(Reason.FROZEN) == hash("Frozen")
    assert f"{Reason.FROZEN}" == "Frozen"
