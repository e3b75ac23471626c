"""`lehr controller`: a function in a file is asked about what is published, here and elsewhere."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ports import free_ports

LEHR = [sys.executable, "-m", "lehr"]

TYPE = """\
name: shop.Note
schema: {type: object, required: [text], additionalProperties: false, properties: {text: {type: string}}}
"""

MODULE = """\
from pathlib import Path

async def reconcile(request):
    if request.asset is not None:
        Path(request.id + ".txt").write_text(request.payload(dict)["text"])

async def stumble(request):
    raise KeyError("no such shelf")

def plain(request):
    pass
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "types").mkdir()
    (tmp_path / "assets").mkdir()
    (tmp_path / "lehr.yaml").write_text("partition: shop\n")
    (tmp_path / "types" / "note.yaml").write_text(TYPE)
    (tmp_path / "notes.py").write_text(MODULE)
    publish(tmp_path, "first")
    return tmp_path


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEHR_")}
    return kept | {"NO_COLOR": "1"}


def lehr(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LEHR, *arguments], cwd=folder, env=environment(), capture_output=True, text=True, timeout=150
    )


def publish(folder: Path, text: str) -> None:
    (folder / "assets" / "notes.yaml").write_text(
        f"{{id: note, type: shop.Note, payload: {{text: {text}}}}}\n"
    )
    done = lehr(folder, "run", "--once", "--source", "directory")
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program, which is asked to end in the end, and does so in good order."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([*LEHR, *arguments], cwd=folder, env=environment(), stderr=log)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, (folder / "log").read_text()
    finally:
        process.kill()
        process.wait(20)


def wait_for(file: Path, text: str) -> None:
    deadline = time.monotonic() + 30
    while not (file.exists() and file.read_text() == text):
        assert time.monotonic() < deadline, (file.parent / "log").read_text()
        time.sleep(0.05)


def test_it_asks_about_what_is_there_and_about_what_is_published_later(shop: Path) -> None:
    with running(shop, "controller", "notes", "--type", "shop.Note"):
        wait_for(shop / "note.txt", "first")
        publish(shop, "second")
        wait_for(shop / "note.txt", "second")


def test_a_type_of_which_there_is_nothing_is_told(shop: Path) -> None:
    with running(shop, "controller", "notes", "--type", "shop.Note", "--type", "shop.Nite"):
        wait_for(shop / "note.txt", "first")
    assert "warning" not in (shop / "log").read_text()
    with running(shop, "controller", "notes", "--type", "shop.Nite"):
        deadline = time.monotonic() + 30
        while "warning: no asset of type shop.Nite yet" not in (shop / "log").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_it_does_the_same_over_http(shop: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)}"
    with running(shop, "serve", "--listen", address):
        deadline = time.monotonic() + 30
        while lehr(shop, "--server", f"http://{address}", "status").returncode:
            assert time.monotonic() < deadline
        with running(
            shop, "--server", f"http://{address}", "controller", "notes:reconcile", "--type", "shop.Note"
        ):
            wait_for(shop / "note.txt", "first")


def test_what_the_function_raises_is_logged_with_the_place_where_it_did(shop: Path) -> None:
    with running(shop, "controller", "notes:stumble", "--type", "shop.Note"):
        deadline = time.monotonic() + 30
        while "no such shelf" not in (shop / "log").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    said = (shop / "log").read_text()
    assert "asset=note" in said
    assert "notes.py" in said


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere", "--type", "shop.Note"], "error[CLI109]"),
        (["notes:plain", "--type", "shop.Note"], "reconcile, stumble"),
        (["notes", "--type", "shop.Note", "--state", "elsewhere"], "elsewhere"),
        (["notes"], "--type"),
    ],
)
def test_what_is_wrong_is_told(shop: Path, arguments: list[str], told: str) -> None:
    done = lehr(shop, "controller", *arguments)
    assert done.returncode in (1, 2)
    assert told in done.stderr
    assert "Traceback" not in done.stderr
