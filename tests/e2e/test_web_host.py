"""What an operator does by hand to the example `web-host`, with real nginx and Redis."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
from collections.abc import Iterator

import pytest

from tests.e2e.bad_input.workspace import Running, until
from tests.e2e.web_host import Host, web_host

SITES = 20
RESTARTS = 5
ROUNDS = int(os.environ.get("ROUNDS", "1"))
"""New and retired sites between two restarts: with three, nginx is reloaded thirty times."""


@pytest.fixture
def host() -> Iterator[Host]:
    with web_host() as made:
        yield made


@pytest.fixture
def running(host: Host) -> Iterator[Running]:
    """`lehr run` on the host, once everything is as intended."""
    host.commit()
    with host.run() as running:
        host.wait()
        yield running


def test_an_edit_is_served_and_visits_are_counted(host: Host, running: Running) -> None:
    assert host.ask("shop") == (200, "<h1>The shop</h1>")
    assert [host.ask("shop", "/visits"), host.ask("shop", "/visits")] == [(200, "1"), (200, "2")]
    with sqlite3.connect(host.made / "visits.sqlite") as database:
        assert database.execute("SELECT site, count(*) FROM visit GROUP BY site").fetchall() == [("shop", 2)]
    host.site("shop", "Winter sale")
    host.commit()
    host.shows("shop", "Winter sale")


def test_killed_programs_come_back(host: Host, running: Running) -> None:
    for port in (host.nginx, host.redis, host.visits):
        os.kill(host.pid(port), signal.SIGKILL)
    until("visits are counted again", lambda: host.ask("blog", "/visits")[0] == 200)
    host.stands("redis/process", "replica 0 was killed by SIGKILL")
    host.wait()


def test_a_program_that_a_signal_has_stopped_is_restarted(host: Host, running: Running) -> None:
    stopped = host.pid(host.redis)
    os.kill(stopped, signal.SIGSTOP)
    until("it is another process", lambda: host.pid(host.redis) not in (0, stopped))
    until("visits are counted again", lambda: host.ask("blog", "/visits")[0] == 200)


def test_a_removed_folder_is_written_again(host: Host, running: Running) -> None:
    shutil.rmtree(host.made / "nginx" / "sites")
    shutil.rmtree(host.made / "sites")
    host.lehr("refresh")
    host.shows("shop", "The shop")
    host.stands("shop/vhost", "Converged")
    assert (host.made / "nginx" / "sites" / "shop.conf").is_file()


def test_a_port_that_is_taken_harms_nothing_and_is_explained(host: Host, running: Running) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        host.configure(port)
        host.commit()
        host.stands("nginx/process", str(port))
        host.configure(host.nginx)
        host.commit("Use the port of before again")
        host.wait()
    host.shows("shop", "The shop")


def test_a_site_without_a_team_is_refused_and_all_stays(host: Host, running: Running) -> None:
    before = host.sequence()
    host.write("sites/shop.yaml", json.dumps({"host": "shop.localhost", "title": "Nobody's"}))
    host.commit()
    running.says("was refused", "shop/vhost has no owner", "add `team: NAME` to the site")
    assert host.sequence() == before
    assert host.ask("shop") == (200, "<h1>The shop</h1>")


def test_a_branch_that_moved_back_is_followed(host: Host, running: Running) -> None:
    old = host.git("rev-parse", "HEAD")
    host.site("shop", "Winter sale")
    host.commit()
    host.shows("shop", "Winter sale")
    host.git("reset", "--hard", "--quiet", old)
    host.shows("shop", "The shop")


def test_new_and_retired_sites_and_restarts_of_the_control_plane_lose_no_request(host: Host) -> None:
    load = host.changed_under_load(sites=SITES - 2, restarts=RESTARTS, rounds=ROUNDS)
    assert load.lost == []
    assert load.asked > 100
    assert load.answers == {"<h1>The shop</h1>\n"}
