"""What the etcd example's README tells people to do works, block by block, with real members."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_tutorials import script, stop
from tests.etcd import EXAMPLE, ROOT, SLOTS, etcd_program, members_below
from tests.ports import free_ports

PAGE = (EXAMPLE / "README.md").read_text()

_LEHR = "import sys; from lehr.cli.main import main; sys.exit(main())"

# Not every machine has curl: `curl -s URL -d CONTENT`.
_CURL = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[2], sys.argv[4].encode(), timeout=20).read().decode())
"""


@pytest.mark.timeout(180)
def test_the_page_on_the_etcd_example_is_run(tmp_path: Path) -> None:
    program, base = etcd_program(), free_ports(2 * SLOTS)
    text = re.sub(r"\b84(\d\d)\b", lambda match: str(base + int(match.group(1)) - 20), script(PAGE))
    # The file comes along with the port of the page.
    text = text.replace("cd ~/plays\n", f"cd ~/plays\nsed -i s/8420/{base}/ assets/clusters.yaml\n", 1)
    for name, content in (("lehr", _LEHR), ("curl", _CURL)):
        (tmp_path / name).write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -B -c {shlex.quote(content)} "$@"\n'
        )
        (tmp_path / name).chmod(0o755)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LEHR_", "ETCD"))
    }
    who = {
        f"GIT_{role}_{key}": "you@localhost" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }
    more = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}", "ETCD": program}
    environment = {**kept, **who, **more, "PYTHONPATH": os.pathsep.join(sys.path)}
    output = tmp_path / "output"
    with output.open("wb") as file:
        shell = subprocess.Popen(
            ["bash", "-c", text],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            code = shell.wait(timeout=150)
        finally:
            stop(shell, tmp_path)
            left = members_below(tmp_path)
            for process in left.values():
                os.kill(process, signal.SIGKILL)
    said = output.read_text()
    assert code == 0, said
    assert left == {}
    assert "has lost its data" in said
    assert '"revision"' in said


def test_every_command_of_the_page_is_run() -> None:
    assert len(re.findall(r"^```\w", PAGE, re.MULTILINE)) == len(
        re.findall(r"^```(?:sh|yaml)$", PAGE, re.MULTILINE)
    )
