"""Nothing of the real world comes into a virtual run, and nothing of the seal stays behind."""

import _thread
import asyncio
import datetime as dt
import logging
import os
import random
import secrets
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable

import pytest

from lehr.base.chance import Chance
from lehr.testing.seal import NotVirtualError, sealed
from lehr.testing.virtual import run

DOORS: dict[str, Callable[[], object]] = {
    "time": lambda: time.time(),
    "time_ns": lambda: time.time_ns(),
    "monotonic": lambda: time.monotonic(),
    "perf_counter": lambda: time.perf_counter(),
    "clock_gettime": lambda: time.clock_gettime(time.CLOCK_REALTIME),
    "sleep": lambda: time.sleep(0),
    "localtime": lambda: time.localtime(),
    "gmtime": lambda: time.gmtime(None),
    "ctime": lambda: time.ctime(),
    "random": lambda: random.random(),
    "shuffle": lambda: random.shuffle([1, 2]),
    "seed": lambda: random.seed(),
    "Random": lambda: random.Random(),
    "Chance": lambda: Chance(),
    "urandom": lambda: os.urandom(1),
    "getrandom": lambda: os.getrandom(1),
    "token_hex": lambda: secrets.token_hex(),
    "SystemRandom": lambda: random.SystemRandom().random(),
    "uuid1": lambda: uuid.uuid1(),
    "uuid4": lambda: uuid.uuid4(),
    "Thread": lambda: threading.Thread(target=str).start(),
    "start_new_thread": lambda: _thread.start_new_thread(str, ()),
    "socket": lambda: socket.socket(),
    "getaddrinfo": lambda: socket.getaddrinfo("127.0.0.1", 1),
    "Popen": lambda: subprocess.Popen(["true"]),
    "fork": lambda: os.fork(),
    "posix_spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "system": lambda: os.system("true"),
}


@pytest.mark.parametrize("door", DOORS)
def test_each_door_is_shut_during_a_run(door: str) -> None:
    async def main() -> None:
        with pytest.raises(NotVirtualError) as caught:
            DOORS[door]()
        assert caught.value.what
        assert caught.value.why
        assert caught.value.fix

    run(main, seed=1)


@pytest.mark.parametrize("door", [door for door in DOORS if door != "fork"])
def test_each_door_is_open_afterwards(door: str) -> None:
    with pytest.raises(ZeroDivisionError):
        run(divide_by_zero, seed=1)
    done = DOORS[door]()
    if isinstance(done, subprocess.Popen):
        done.wait()
    elif isinstance(done, socket.socket):
        done.close()
    elif door == "posix_spawn":
        assert isinstance(done, int)
        os.waitpid(done, 0)


async def divide_by_zero() -> None:
    raise ZeroDivisionError


def test_what_was_patched_is_what_was_there() -> None:
    before = (time.time, random.random, os.urandom, random.Random.seed, uuid.uuid1)
    with sealed():
        assert time.time is not before[0]
    assert (time.time, random.random, os.urandom, random.Random.seed, uuid.uuid1) == before


def test_a_seal_within_a_seal_does_not_open_it() -> None:
    with sealed():
        with sealed():
            pass
        with pytest.raises(NotVirtualError):
            time.time()
    assert time.time() > 0


def test_another_thread_is_not_sealed() -> None:
    begun, go_on, seen = threading.Event(), threading.Event(), list[object]()

    def other() -> None:
        begun.wait()
        seen.extend((time.time(), random.random(), os.urandom(1), random.Random().random()))
        socket.socket().close()
        go_on.set()

    thread = threading.Thread(target=other)
    thread.start()

    async def main() -> None:
        begun.set()
        assert go_on.wait(30)

    run(main, seed=1)
    thread.join()
    assert len(seen) == 4


def test_a_seed_is_all_that_randomness_needs() -> None:
    async def main() -> float:
        return random.Random(7).random() + Chance(7).uniform(0, 1)

    assert run(main, seed=1) == 2 * random.Random(7).random()


def test_a_time_that_is_given_can_be_told_in_words() -> None:
    async def main() -> tuple[int, str]:
        return time.gmtime(0.0).tm_year, dt.datetime.fromtimestamp(0, tz=dt.UTC).isoformat()

    assert run(main, seed=1) == (1970, "1970-01-01T00:00:00+00:00")


def test_logs_databases_and_temporary_files_go_on_working(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> object:
        logging.getLogger("test").warning("something happened")
        with tempfile.NamedTemporaryFile() as file, sqlite3.connect(file.name) as db:
            row = db.execute("SELECT unixepoch('now') > 0, random() IS NOT NULL").fetchone()
        db.close()
        await asyncio.sleep(3600)
        return row

    assert run(main, seed=1) == (1, 1)
    assert caplog.messages == ["something happened"]
