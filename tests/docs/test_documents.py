"""The repository's documents point at what exists, and speak of the project alone."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_REFERENCE = re.compile(r"^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?:src|tests|docs|benchmarks|scripts|examples|\.ci)/[a-z_\d./-]*[a-z_\d]/?")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_COMMAND = re.compile(r"\bmake ([a-z-]+)")

# Written so that this file does not hold what it looks for.
_FORBIDDEN = [
    (r"/(?:work|root|home/\w+)/", "a path of somebody's machine"),
    (r"file:" + r"///(home|root|Users)", "a path of somebody's machine"),
    (r"(?:[\w-]+\.)*py" + r"pi\.(?:org|python\.org)", "a registry's host"),
    (r"files\.python" + r"hosted\.org", "a registry's host"),
    (r"--(?:extra-)?index" + r"-url[ =]", "a registry's address"),
    (r"\bTO" + r"DO\b|\bFIX" + r"ME\b|\bX" + r"XX\b", "work that is not done"),
    (r"<<<<" + r"<<<|>>>>" + r">>> ", "a merge that is not done"),
]


@cache
def tracked() -> tuple[Path, ...]:
    """Every file of the repository that is there, tracked or about to be."""
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "-C",
        str(ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    paths = (ROOT / name for name in sorted(set(listed.split("\0"))) if name)
    return tuple(path for path in paths if path.is_file())


def documents() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".md"]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(document: Path) -> set[str]:
    """The anchors that a document's headings make."""
    headings = _HEADING.findall(_FENCE.sub("", document.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_link(document: Path, target: str) -> str | None:
    """Why the link `target` in `document` leads nowhere; None when it leads somewhere."""
    if re.match(r"[a-z]+:", target):
        return None if target.startswith(("https:", "mailto:")) else "is neither relative nor https"
    path, _, anchor = target.partition("#")
    place = (document.parent / path).resolve() if path else document
    if not place.is_relative_to(ROOT):
        return "leaves the repository"
    if not place.exists():
        return "does not exist"
    if anchor and place.suffix == ".md" and anchor not in anchors(place):
        return "names a heading that does not exist"
    return None


@pytest.mark.parametrize("document", documents(), ids=relative)
def test_every_link_leads_somewhere(document: Path) -> None:
    text = _FENCE.sub("", document.read_text())
    targets = _LINK.findall(text) + _REFERENCE.findall(text)
    broken = [f"{target} {why}" for target in targets if (why := broken_link(document, target))]
    assert not broken


@pytest.mark.parametrize("document", documents(), ids=relative)
def test_every_path_that_is_named_exists(document: Path) -> None:
    named = [code for code in _CODE.findall(document.read_text()) if _PATH.fullmatch(code)]
    missing = [path for path in named if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("document", documents(), ids=relative)
def test_every_make_target_that_is_named_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = [*_CODE.findall(document.read_text()), *(m.group() for m in _FENCE.finditer(document.read_text()))]
    assert {target for part in code for target in _COMMAND.findall(part)} <= targets


def test_every_make_target_is_explained() -> None:
    makefile = (ROOT / "Makefile").read_text()
    explained = set(re.findall(r"^#   make ([a-z-]+)", makefile, re.MULTILINE))
    phony = set(re.findall(r"^\.PHONY: ([a-z-]+)$", makefile, re.MULTILINE))
    assert phony - explained == {"help", "check-wheels"}
    assert explained <= phony


def test_every_decision_has_a_number_of_its_own_and_the_parts_of_the_template() -> None:
    folder = ROOT / "docs" / "adr"
    records = sorted(path for path in folder.glob("*.md") if path.name != "0000-template.md")
    numbers = [path.name[:4] for path in records]
    assert records
    assert len(set(numbers)) == len(numbers)
    parts = anchors(folder / "0000-template.md") & {"context", "decision", "consequences"}
    incomplete = {path.name: missing for path in records if (missing := parts - anchors(path))}
    assert not incomplete


def test_the_repository_speaks_of_the_project_alone() -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for pattern, what in _FORBIDDEN:
            found += [f"{relative(path)}: {what}: {match.group()}" for match in re.finditer(pattern, text)]
    assert not found


def test_the_lock_files_name_no_index_and_hash_every_package() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        lock = (ROOT / name).read_text()
        assert "://" not in lock
        requirements = re.findall(r"^[A-Za-z0-9].*$", lock, re.MULTILINE)
        assert requirements
        assert all(re.match(r"[\w.-]+==\S+", line) and line.endswith("\\") for line in requirements)
        assert lock.count("--hash=sha256:") >= len(requirements)


def test_the_lock_for_development_holds_the_lock_for_use() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^[\w.-]+==[^\s;]+", (ROOT / name).read_text(), re.MULTILINE))

    assert pins("requirements.lock") <= pins("requirements-dev.lock")
