"""Documents and source avoid wording that reads as translated: `scripts/english.py` has the list."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.test_documents import ROOT, documents, relative

_NOT_CHECKED = {
    "docs/reference/cli.md": "generated from the help of the commands",
    "docs/reference/errors.md": "generated from the messages",
    "docs/reference/reasons.md": "generated from the list of reasons",
}
_ALLOWED: dict[tuple[str, str], str] = {}
"""Path and the line's beginning or words of it: why this hit is right."""
_ALLOWED_IN_SOURCE = {
    ("http/resources.py", r'"(/v1/partitions/{partition}/)?standing"'): "an address of the HTTP API",
    (r"store/sql/.*\.py", r"\bstanding\b"): "a table of the store",
    ("testing/sim/examples/hello.py", "nobody reads it"): "people read notices",
}
"""Path below `src/lehr` and words of the line, both as expressions: why this hit is right."""


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("english", ROOT / "scripts" / "english.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["english"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


ENGLISH = script()
SOURCE = ROOT / "src" / "lehr"
CHECKED = [path for path in documents() if relative(path) not in _NOT_CHECKED]


def allowed(path: Path, line: str) -> bool:
    return any(name == relative(path) and words in line for name, words in _ALLOWED)


@pytest.mark.parametrize("document", CHECKED, ids=relative)
def test_a_document_is_in_plain_english(document: Path) -> None:
    lines = document.read_text().splitlines()
    assert [str(hit) for hit in ENGLISH.hits([document]) if not allowed(document, lines[hit.line - 1])] == []


def test_comments_of_examples_are_in_plain_english() -> None:
    files = [
        path for path in (ROOT / "examples").rglob("*") if path.suffix in (".yaml", ".yml", ".toml", ".sh")
    ]
    assert files
    assert [str(hit) for hit in ENGLISH.hits(files)] == []


def reasons(hit: Any) -> list[tuple[str, str]]:
    """Entries of `_ALLOWED_IN_SOURCE` that allow a hit."""
    path = hit.path.relative_to(SOURCE).as_posix()
    line = hit.path.read_text().splitlines()[hit.line - 1]
    return [
        entry
        for entry in _ALLOWED_IN_SOURCE
        if re.fullmatch(entry[0], path) and any(hit.text in part[0] for part in re.finditer(entry[1], line))
    ]


def test_the_source_is_in_plain_english() -> None:
    allowed_by = {hit: reasons(hit) for hit in ENGLISH.hits([SOURCE])}
    assert [str(hit) for hit, entries in allowed_by.items() if not entries] == []
    assert {entry for entries in allowed_by.values() for entry in entries} == _ALLOWED_IN_SOURCE.keys()


def test_nothing_is_allowed_that_does_not_occur() -> None:
    occur = {
        (relative(hit.path), words)
        for hit in ENGLISH.hits(CHECKED)
        for name, words in _ALLOWED
        if name == relative(hit.path) and words in hit.path.read_text().splitlines()[hit.line - 1]
    }
    assert occur == _ALLOWED.keys()


@pytest.mark.parametrize("pattern", ENGLISH.PATTERNS, ids=lambda pattern: pattern.name)
def test_every_pattern_has_a_reason_and_finds_its_example(pattern: Any, tmp_path: Path) -> None:
    assert pattern.reason.endswith(".")
    example = EXAMPLES[pattern.name]
    for suffix, text in ((".md", example), (".py", f"# {example}\n"), (".yaml", f"# {example}\n")):
        path = tmp_path / f"example{suffix}"
        path.write_text(text)
        assert [hit.pattern.name for hit in ENGLISH.hits([tmp_path])] == [pattern.name]
        path.unlink()


EXAMPLES = {
    "whoever": "Whoever asks gets an answer.",
    "somebody": "A push that somebody started.",
    "all that": "Delete all that was made.",
    "is no": "A partition is no cluster.",
    "mend": "Mend the file.",
    "anew": "Write the lock files anew.",
    "shall": "Such a file shall go.",
    "stands": "As long as the pin stands.",
    "beside": "A copy beside the file.",
    "by itself": "It restarts by itself.",
    "meanwhile": "Changes made meanwhile are merged.",
    "go on": "The push goes on.",
    "tell": "The log tells why.",
    "say": "The log says why.",
    "come to": "The roll comes to an end.",
    "what is": "What failed is tried again.",
    "too": "It keeps the comments, too.",
    "for it": "The file has a row for it.",
    "old words": "Both behave alike.",
}


def test_code_and_program_output_are_not_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    shown = "It prints\n\n    whoever stands\n\nand `mend`:\n\n```sh\necho whoever\n```\n"
    page.write_text(f"{shown}\nAnd whoever asks.\n")
    assert [hit.line for hit in ENGLISH.hits([page])] == [11]


def test_code_in_strings_is_not_prose(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    code = """f"{told or 'x'}: {f', {said}' if said is None else ''}"\n"""
    source.write_text(f"{code}# `mend` is None\nf\"{{'nobody' if told else ''}} reads\"\n")
    assert [(hit.line, hit.text) for hit in ENGLISH.hits([source])] == [(3, "nobody")]
