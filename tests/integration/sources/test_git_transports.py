"""Repositories over https and ssh, with the git command as people have it."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.sources import GitSource
from tests.codes import raises

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

_SSH = """#!/bin/sh
# Stands in for ssh: does on this machine what was asked of the host, and lets strangers wait outside.
while [ $# -gt 2 ]; do shift; done
case "$1" in *stranger*) echo "Permission denied (publickey)." >&2; exit 255;; esac
exec sh -c "$2"
"""


def git(root: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@example.org"}
    done = subprocess.run(
        ["git", *arguments], cwd=root, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "intent"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "lehr.yaml").write_text("partition: a\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    git(root, "update-server-info")
    return root


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(repository: Path, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of the repository on a server with a certificate, and that certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    options = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *options], check=True, capture_output=True)
    handler = functools.partial(_Quiet, directory=str(repository.parent))
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    found.socket = context.wrap_socket(found.socket, server_side=True)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield f"https://localhost:{found.server_port}/intent/.git", certificate
    found.shutdown()
    thread.join()
    found.server_close()


def follow(location: str, tmp_path: Path) -> GitSource:
    return GitSource(location, tmp_path / "mirror.git", clock=SystemClock(), branch="main")


def test_a_repository_is_read_over_https(
    server: tuple[str, Path], repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, certificate = server
    monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate))
    source = follow(url, tmp_path)
    assert source.newest().revision.revision == git(repository, "rev-parse", "HEAD")
    assert source.newest().read("lehr.yaml") == b"partition: a\n"


def test_a_server_whose_certificate_nobody_knows_is_not_read(
    server: tuple[str, Path], tmp_path: Path
) -> None:
    with raises("SRC115", TransientError) as caught:
        follow(server[0], tmp_path).newest()
    assert "certificate" in caught.value.why


@pytest.mark.parametrize("form", ["ssh://git@example.org{}", "git@example.org:{}"])
def test_a_repository_is_read_over_ssh(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(_SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    source = follow(form.format(repository), tmp_path)
    assert source.newest().revision.revision == git(repository, "rev-parse", "HEAD")
    (repository / "lehr.yaml").write_text("partition: b\n")
    git(repository, "commit", "-q", "-a", "-m", "second")
    assert source.newest().read("lehr.yaml") == b"partition: b\n"


def test_a_host_that_refuses_us_is_a_matter_for_a_person(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(_SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    with raises("SRC113", StalledError):
        follow(f"ssh://stranger@example.org{repository}", tmp_path).newest()
