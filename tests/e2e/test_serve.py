"""`lehr serve` as people run it: a process over the store that `lehr run` has filled."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ASSETS = "- {id: web/motd, type: lehr.File, payload: {path: etc/motd, content: hello}}\n"
LEHR = (sys.executable, "-m", "lehr")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("hello")
    (folder / "assets").mkdir()
    (folder / "lehr.yaml").write_text("partition: hello\n")
    (folder / "assets/all.yaml").write_text(ASSETS)
    subprocess.run([*LEHR, "run", "--once"], cwd=folder, check=True, capture_output=True, timeout=50)
    return folder


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [*LEHR, "serve", "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("answering at "), line
            yield line.split()[-1], process
        finally:
            process.kill()


def asked(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


def test_what_is_in_force_is_answered_and_a_signal_ends_it(folder: Path) -> None:
    with serving(folder) as (url, process):
        page = asked(f"{url}/v1/partitions/hello/assets?fields=payload.path")
        assert page["incarnation"] == "hello@1"
        assert page["assets"] == [{"id": "web/motd", "type": "lehr.File", "payload": {"path": "etc/motd"}}]
        [row] = asked(f"{url}/v1/partitions/hello/standing")
        assert (row["id"], row["status"]) == ("web/motd", "Converged")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_an_address_that_is_taken_is_told(folder: Path) -> None:
    with serving(folder) as (url, _process):
        command = [*LEHR, "serve", "--listen", url.removeprefix("http://")]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 1
        assert "cannot be listened on" in done.stderr
        assert "--listen" in done.stderr


def test_an_address_that_is_none_is_told(folder: Path) -> None:
    command = [*LEHR, "serve", "--listen", "somewhere"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert "127.0.0.1:8470" in done.stderr
