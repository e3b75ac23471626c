"""Reasons and codes of errors: each is in one list, used everywhere, and on a page."""

from __future__ import annotations

import ast
import importlib.util
import re
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


REFERENCE = script()
PAGES = REFERENCE.PAGES
CODE = re.compile(r"[A-Z]{3}[1-9]\d\d")
DIAGNOSTIC = re.compile(r"[A-Z]{3}0\d\d")


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SRC.rglob("*.py")):
        yield path, ast.parse(path.read_text())


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_source_says(name: str) -> None:
    text = (ROOT / "docs" / "reference" / name).read_text()
    assert text == PAGES[name](), "write it again with scripts/reference.py"


def test_every_error_has_a_code() -> None:
    """Or passes on that of the error, or of the diagnostic, that it comes from."""
    wrong = []
    for item in REFERENCE.built():
        code = item.code
        passed_on = isinstance(code, ast.Attribute | ast.Name)
        if not passed_on and not (isinstance(code, ast.Constant) and CODE.fullmatch(str(code.value))):
            wrong.append(f"{item.path.relative_to(SRC)}:{item.call.lineno}: {ast.unparse(item.call)}")
    assert not wrong


def test_a_code_is_of_one_message_and_no_diagnostic_has_it() -> None:
    messages: dict[str, set[str]] = {}
    for item in REFERENCE.built():
        if isinstance(item.code, ast.Constant):
            messages.setdefault(str(item.code.value), set()).add(item.text("what"))
    assert {code: said for code, said in messages.items() if len(said) > 1} == {}
    given = [
        str(keyword.value.value)
        for _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Diagnostic"
        for keyword in node.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    ]
    assert given
    assert [code for code in given if not DIAGNOSTIC.fullmatch(code)] == []


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
