"""The page about HTTP names all that there is, and no more."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.control.http_servers import token_for
from lehr.http.catalogue import CATALOGUE
from lehr.http.hooks import HOOK_PATH
from lehr.http.openapi import HEALTH_PATH, openapi
from lehr.http.problems import STATUS
from tests.said import address

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "http.md").read_text()


def test_every_path_and_every_parameter_is_described_and_no_other() -> None:
    described = set()
    for path, given in re.findall(r"^\| (?:`(/[^`?]*)\??([^`]*)`|\(itself\)) \|", PAGE, re.MULTILINE):
        described.add((path, frozenset(re.findall(r"(\w+)=", given))))
    there = set()
    for path, item in openapi(CATALOGUE)["paths"].items():
        if path.startswith("/v1/partitions"):
            names = frozenset(p["name"] for p in item["get"]["parameters"] if p["in"] == "query")
            below = re.sub(r"{(\w+)}", lambda found: found[1].upper(), path.removeprefix("/v1/partitions"))
            there.add((below, names))
    assert described == there
    assert HEALTH_PATH in PAGE
    assert HOOK_PATH in PAGE


def test_every_code_is_described_with_its_status_and_no_other() -> None:
    told = re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE, re.MULTILINE)
    assert {code: int(status) for code, status in told} == STATUS


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A server over the workspace that a newcomer makes."""
    lehr = (sys.executable, "-m", "lehr")
    for arguments in (("init", "hello"), ("run", "hello", "--once")):
        subprocess.run([*lehr, *arguments], cwd=folder, check=True, capture_output=True, timeout=150)
    command = [*lehr, "serve", "--state", str(folder / "hello"), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield address(process)
        finally:
            process.terminate()
            process.wait(timeout=20)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on the PATH")
def test_every_line_that_is_shown_has_an_answer(tmp_path: Path) -> None:
    lines = re.findall(r"^    (curl -H \"\$token\" .*)$", PAGE, re.MULTILINE)
    assert len(lines) == 4
    answers = []
    with serving(tmp_path) as url:
        for line in lines:
            given = f"Authorization: Bearer {token_for(url)}"
            command = shlex.split(line.replace("http://127.0.0.1:8470", url).replace("$token", given))
            done = subprocess.run([*command, "-sS", "--fail"], capture_output=True, text=True, timeout=20)
            assert done.returncode == 0, f"{line}: {done.stderr}"
            answers.append(json.loads(done.stdout))
    one, filtered, difference, referring = answers
    assert one["id"] == "hello/file"
    assert [asset["payload"] for asset in filtered["assets"]] == [{"path": "production/hello.txt"}]
    assert difference["assets"] == []
    assert [item["id"] for item in referring] == ["hello/folder"]
