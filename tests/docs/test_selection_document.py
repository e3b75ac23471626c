"""The pages on target selections: their Python is run as it is written, and every field is described."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from lehr.rollouts import Selection, TargetSelection, Unit, Wave
from lehr.rollouts.question import Question
from lehr.rollouts.services import judged
from lehr.sdk.target_selection import SelectionAnswer, SelectionQuestion

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = (ROOT / "docs" / "reference" / "target-selection.md").read_text()
HOW_TO = (ROOT / "docs" / "how-to" / "choose-what-is-updated-next.md").read_text()
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


def test_the_question_and_the_answer_of_the_page_are_some() -> None:
    question, answer = blocks("json")
    asked = msgspec.json.decode(question, type=SelectionQuestion)
    assert judged(asked, answer.encode()).update == ("nyc",)


def fields(heading: str, table: int = 0) -> dict[str, str]:
    """The fields of a table of the reference, with their defaults."""
    section = REFERENCE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = section.split("| field | default | |")[table + 1].partition("\n\n")[0]
    found = re.findall(r"^\| (`.*?) \| (.*?) \|", rows, re.MULTILINE)
    return {name: default for names, default in found for name in re.findall(r"`(\w+)`", names)}


@pytest.mark.parametrize(
    ("kind", "heading", "table"),
    [
        (Question, "Question", 0),
        (TargetSelection, "Selection", 0),
        (Wave, "Selection", 1),
        (Unit, "Units", 0),
        (SelectionAnswer, "Answer", 0),
        (Selection, "Answer", 0),
    ],
)
def test_every_field_is_described(kind: type[msgspec.Struct], heading: str, table: int) -> None:
    described = fields(heading, table)
    assert set(described) == set(kind.__struct_fields__)
    required = {field.name for field in msgspec.structs.fields(kind) if field.required}
    if kind is not Selection:
        assert {name for name, default in described.items() if default == "required"} == required


def test_every_selection_of_the_how_to_can_be_used() -> None:
    table = HOW_TO.partition("| for | write |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| [^|]+ \| (`.*?) \|$", table, re.MULTILINE)
    assert len(rows) == 6
    for row in rows:
        text = "\n".join(re.findall(r"`([^`]+)`", row))
        msgspec.convert(yaml.safe_load(text), TargetSelection)


def test_every_cause_is_in_the_reference() -> None:
    raised = {
        code
        for path in ("rollouts/services.py", "http/selection_service.py")
        for code in re.findall(r'"(ROL1\d\d)"', (ROOT / "src" / "lehr" / path).read_text())
    }
    assert set(re.findall(r"ROL1\d\d", REFERENCE)) == raised


def test_the_example_is_shown_as_it_answers() -> None:
    """`tests/integration/examples` asks it; here, that both show the same program and address."""
    assert "examples/target-selection/select.pl 9000 &" in PAGE
    assert "`https://HOST/v1/select`" in PAGE
