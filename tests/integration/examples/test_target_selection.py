"""`examples/target-selection`: a selection that is not in Python, over HTTP."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from lehr.cli.main import cli
from lehr.http.selection_service import HttpSelectionService
from lehr.rollouts.services import RefusedAnswerError
from lehr.testing.conformance.target_selection import RULES, Rule, Subject

EXAMPLE = Path(__file__).parents[3] / "examples" / "target-selection"
PROGRAM = EXAMPLE / "select.pl"

pytestmark = pytest.mark.skipif(
    shutil.which("perl") is None
    or subprocess.run(["perl", "-MJSON::PP", "-e", "1"], capture_output=True).returncode != 0,
    reason="there is no Perl with its standard modules",
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with subprocess.Popen(["perl", PROGRAM, "0"], stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        try:
            yield serving.stdout.readline().strip()
        finally:
            serving.kill()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_example_keeps_the_contract(rule: Rule, url: str) -> None:
    labels: tuple[dict[str, str], ...] = ({"region": "us"}, {"region": "eu"}, {})
    asyncio.run(rule(Subject(lambda: HttpSelectionService(url), {"regions": ["eu", "us"]}, labels)))


def test_lehr_asks_the_example(url: str) -> None:
    done = CliRunner().invoke(cli, ["select", str(EXAMPLE / "question.yaml"), "--service", url, "-o", "json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["update"] == ["nyc"]
    assert answer["others"]["par"] == "lon goes first in region eu"


def test_another_path_is_a_refusal_with_its_cause(url: str) -> None:
    done = CliRunner().invoke(cli, ["select", str(EXAMPLE / "question.yaml"), "--service", f"{url}/x"])
    assert isinstance(done.exception, RefusedAnswerError)
    assert done.exception.code == "ROL119"


def test_the_example_answers_one_question_from_stdin() -> None:
    question = json.dumps({"units": [{"id": "a"}], "now": 0})
    done = subprocess.run(["perl", PROGRAM, "-"], input=question, capture_output=True, text=True, timeout=20)
    assert json.loads(done.stdout) == {"hold": "", "others": {}, "update": ["a"]}
