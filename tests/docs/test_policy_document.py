"""What the pages on policies tell people to do works, and shows what it says."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from lehr.cli.test import test as command
from tests.docs.test_tutorials import run

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "how-to" / "write-a-policy.md"
REFERENCE = DOCS / "reference" / "policies.md"


def test_the_page_on_policies_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    text = PAGE.read_text()
    said = re.sub(r"\s+", " ", run(text, folder))
    shown = text.partition("\n## Judge assets together\n")[0]
    prose = re.sub(r"^```.*?^```", "", shown, flags=re.MULTILINE | re.DOTALL)
    facts = [re.sub(r"\s+", " ", line) for line in re.findall(r"^    (\S.*)$", prose, re.MULTILINE)]
    assert len(facts) == 6
    assert [line for line in facts if line not in said] == []
    assert said.count("nobody answers") == 1  # and no more once it is excluded


def test_the_policies_of_the_reference_pass_their_own_examples(tmp_path: Path) -> None:
    policies = re.findall(r"^```yaml\n(id: .*?)^```", REFERENCE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(policies) == 3
    path = tmp_path / "policies.yaml"
    path.write_text("---\n".join(policies))
    result = CliRunner().invoke(command, [str(path)])
    assert result.exit_code == 0, result.output
    assert result.stderr == "3 examples of 3 policies, 0 failed\n"
