"""Given a program that cannot run as intended, when it is to run, then `why` says why, and others run."""

from __future__ import annotations

import functools
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, until

DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "open(r'{ready}', 'w').close()\n"
    "while True: time.sleep(60)  # {version}"
)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace; whatever supervisord it started is ended with all that it runs."""
    workspace = Workspace(tmp_path)
    yield workspace
    for file in workspace.state.glob("supervisor/*/supervisord.pid"):
        pid = int(file.read_text())
        os.kill(pid, signal.SIGTERM)
        until(f"supervisord {pid} ends", functools.partial(gone, pid))


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def serve(workspace: Workspace, port: int) -> None:
    workspace.declare(
        "web",
        "lehr.Process",
        {
            "command": [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "{port}"],
            "ports": [{"name": "http", "base": port}],
            "health_url": "http://127.0.0.1:{port}/",
        },
    )


def test_a_port_that_a_stranger_holds_is_named_with_him_and_taken_when_it_is_free(shop: Workspace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        serve(shop, port)
        motd = shop.declare_file("motd", "welcome\n")
        shop.commit()
        with shop.run() as running:
            until("others go on", motd.exists, running.said)
            shop.stands(
                "web",
                "retried",
                f"port {port} of replica 0 is in use by process {os.getpid()}",
                "stop that process, or declare another port",
            )
            stranger.close()
            shop.stands("web", "converged")


def test_a_process_that_dies_at_once_says_its_last_words(shop: Workspace) -> None:
    shop.declare("web", "lehr.Process", {"command": ["sh", "-c", "echo out of cheese >&2; exit 3"]})
    shop.commit()
    with shop.run() as running:
        shop.stands("web", "retried", "ended right after its start (exit status 3)", "out of cheese")
        assert "Traceback" not in running.said()


def test_a_program_that_is_not_there_is_named_and_nothing_is_started(shop: Workspace) -> None:
    shop.declare("web", "lehr.Process", {"command": ["/no/such/program"]})
    shop.commit()
    done = shop.once()
    done.failed(
        "the program /no/such/program was not found or is not executable",
        "install it, or change the first word of `command`",
        "Stalled (PushStalled)",
        "lehr retry",
    )
    assert not list(shop.state.glob("supervisor/*/supervisord.pid"))


def test_a_process_that_ignores_sigterm_is_ended_all_the_same(shop: Workspace) -> None:
    ready = shop.folder / "ready"

    def declare(version: int) -> None:
        code = DEAF.format(ready=ready, version=version)
        payload = {"command": [sys.executable, "-c", code], "stop_timeout_seconds": 1}
        shop.declare("deaf", "lehr.Process", payload)
        shop.commit()

    declare(1)
    with shop.run():
        until("it is deaf", ready.exists)
        shop.stands("deaf", "converged", "shop@1")
        ready.unlink()
        declare(2)
        until("the next one is deaf", ready.exists)
        shop.stands("deaf", "converged", "shop@2")
        assert len(shop.operations("deaf")) == 2
