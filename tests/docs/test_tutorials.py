"""What the README and the tutorial tell people to do works, block by block, as it stands."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(r"^```(sh|yaml|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+)\n")
_PORTS = 4

_LEHR = f"""#!/bin/sh
exec {shlex.quote(sys.executable)} -c 'import sys; from lehr.cli.main import main; sys.exit(main())' "$@"
"""
# Not every machine has curl, but Python can get a page, too.
_CURL = f"""#!/bin/sh
exec {shlex.quote(sys.executable)} -c \
    'import sys; from urllib.request import urlopen; print(urlopen(sys.argv[2]).read().decode())' "$@"
"""

# People take longer to read on than `lehr run` takes to start, but not to get to the next line of a block.
_STARTED = "\nlehr run &\nuntil lehr sync; do sleep 0.1; done\n"


def script(markdown: str) -> str:
    """The blocks as one script: shell as it is; YAML and Python into the files that they name."""
    parts = ["set -eu"]  # stop at the first command that fails
    for language, text in _BLOCK.findall(markdown):
        if language == "sh":
            parts.append(re.sub(r"\nlehr run &\n\Z", _STARTED, f"\n{text}"))
            continue
        named = _FILE.match(text)
        assert named, f"this block does not say which file it is:\n{text}"
        parts.append(f"cat > {named.group(1)} <<'END'\n{text}END\n")
    return "\n".join(parts)


def run(markdown: str, folder: Path, seconds: float = 250) -> str:
    """Run the blocks in `folder`, in so many seconds, and leave nothing running that they have started."""
    base = free_ports(_PORTS)
    text = script(re.sub(r"\b842([0-9])\b", lambda match: str(base + int(match.group(1))), markdown))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LEHR_"))
    }
    environment |= {
        "HOME": str(folder.parent),
        "XDG_STATE_HOME": str(folder.parent / "states"),
        "PATH": f"{folder.parent}:{os.environ['PATH']}",
        "GIT_AUTHOR_NAME": "you",
        "GIT_AUTHOR_EMAIL": "you@localhost",
        "GIT_COMMITTER_NAME": "you",
        "GIT_COMMITTER_EMAIL": "you@localhost",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for name, program in (("lehr", _LEHR), ("curl", _CURL)):
        (folder.parent / name).write_text(program)
        (folder.parent / name).chmod(0o755)
    output = folder.parent / "output"
    with output.open("wb") as file:
        shell = subprocess.Popen(
            ["bash", "-c", text],
            cwd=folder,
            env=environment,
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            shell.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"it has not ended within {seconds:g} s:\n{output.read_text()}")
        finally:
            stop(shell, folder)
    assert shell.returncode == 0, output.read_text()
    return output.read_text()


def stop(shell: subprocess.Popen[bytes], folder: Path) -> None:
    """End the shell's session, and the supervisords below `folder`."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(shell.pid, signal.SIGTERM)
    shell.wait(timeout=10)
    for record in folder.parent.glob("states/lehr/*/supervisor/*/supervisord.pid"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may be about to end already
            os.kill(int(record.read_text()), signal.SIGTERM)


def section(document: Path, heading: str) -> str:
    return document.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_five_minutes_with_a_repository_of_ones_own(tmp_path: Path) -> None:
    repository = tmp_path / "shop"
    repository.mkdir()
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    said = run(section(ROOT / "README.md", "Five minutes with your own repository"), repository)
    assert "Hello! Lehr keeps this file as declared in git." in said
    assert "Good morning" in said
    assert "we are closed" in said
    assert not (repository / "production" / "greeting.txt").exists()


def test_the_tutorial_leads_from_nothing_to_two_sites_and_back(tmp_path: Path) -> None:
    folder = tmp_path / "tutorial"
    folder.mkdir()
    said = run((ROOT / "docs" / "tutorial.md").read_text(), folder)
    assert "Hello again" in said
    assert "It is summer" in said
    assert "It says where, why, and how to fix it." in said
    assert (folder / "site" / "production" / "hello" / "index.html").exists()
    assert not (folder / "site" / "production" / "summer" / "index.html").exists()


@pytest.mark.parametrize("document", ["README.md", "docs/tutorial.md"])
def test_every_command_that_is_shown_is_run(document: str) -> None:
    text = (ROOT / document).read_text()
    assert len(re.findall(r"^```(?!mermaid)\w", text, re.MULTILINE)) == len(_BLOCK.findall(text))
