"""The page on target selections: its Python is run as it is written, and its codes are those of the code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec

from lehr.sdk.target_selection import SelectionAnswer, SelectionQuestion

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "write-a-target-selection.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def install(folder: Path) -> dict[str, str]:
    """Do what pip does; the environment in which Python finds it."""
    for block in blocks("python"):
        name = re.match(r"# (\S+\.py)\n", block)
        assert name is not None
        (folder / name[1]).write_text(block)
    about = folder / "by_region-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: by-region\nVersion: 1.0\n")
    [entry] = re.findall(r'^by-region = "(.*)"$', PAGE, re.MULTILINE)
    (about / "entry_points.txt").write_text(f"[lehr.target_selections]\nby-region = {entry}\n")
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_the_selection_of_the_page_keeps_the_contract(tmp_path: Path) -> None:
    environment = install(tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "test_by_region.py"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_an_installed_selection_is_asked_by_its_name(tmp_path: Path) -> None:
    environment = install(tmp_path)
    [question, *_] = blocks("json")
    (tmp_path / "question.yaml").write_text(question)

    def lehr(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("lehr")), "select", "question.yaml", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    done = lehr("--service", "by-region", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["update"] == ["nyc"]
    done = lehr("--service", "by-religion")
    assert done.returncode != 0
    assert "WIR102" in done.stderr
    assert "by-region" in done.stderr


def test_the_question_of_the_page_is_one() -> None:
    [question, *_] = blocks("json")
    msgspec.json.decode(question, type=SelectionQuestion)


def test_every_field_of_an_answer_is_described() -> None:
    table = PAGE.split("## Answer")[1].split("##")[0]
    names = " ".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", names)) == set(SelectionAnswer.__struct_fields__)


def test_every_cause_is_on_the_page() -> None:
    raised = {
        code
        for path in ("rollouts/services.py", "http/selection_service.py")
        for code in re.findall(r'"(ROL1\d\d)"', (ROOT / "src" / "lehr" / path).read_text())
    }
    assert set(re.findall(r"ROL1\d\d", PAGE)) == raised


def test_the_example_is_shown_as_it_answers() -> None:
    """`tests/integration/examples` asks it; here, that both show the same program and address."""
    assert "examples/target-selection/select.pl 9000 &" in PAGE
    assert "`http://HOST:8470/v1/select`" in PAGE
