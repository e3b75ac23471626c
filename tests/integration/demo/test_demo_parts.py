"""The demo's own parts: an audience that counts right, and ports that two demos do not share."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.demo.client import PortRange
from lehr.demo.repository import Repository
from lehr.demo.shakespeare.audience import Audience
from lehr.demo.shakespeare.metrics import CounterSource
from lehr.monitoring.configuration import HttpDefinition
from lehr.monitoring.json_address import JsonAddress
from lehr.monitoring.web import Web
from lehr.rollouts.metrics import About, CanaryAnalysis
from lehr.rollouts.metrics import Counter as Counted
from lehr.secrets import SecretReader
from tests.ports import free_ports

PATIENCE = 20.0
GOOD = b"HTTP/1.1 200 OK\r\nVersion: v1\r\nCluster: eu\r\nProcess: 7\r\nContent-Length: 2\r\n\r\nhi"
CLOSING = GOOD.replace(b"Process", b"Connection: close\r\nProcess")
FAULTY = GOOD.replace(b"200 OK", b"500 Internal Server Error").replace(b"v1", b"v3")
BAD = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\ngone"


def listen_to(answers: Iterator[bytes], enough: Callable[[Audience], bool]) -> Audience:
    """An audience of a server that gives these answers; b"" closes the connection without one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                answer = next(answers)
                writer.write(answer)
                if answer in (b"", CLOSING):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def main() -> Audience:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            clock = SystemClock()
            audience = Audience(server.sockets[0].getsockname()[1], clock)
            audience.sit_down()
            try:
                async with asyncio.timeout(PATIENCE):
                    while not enough(audience):
                        await clock.sleep(0.01)
            finally:
                await audience.leave()
        return audience

    return asyncio.run(main())


def then_good(*first: bytes) -> Iterator[bytes]:
    yield from first
    while True:
        yield GOOD


def test_every_request_without_a_good_answer_is_lost() -> None:
    heard = listen_to(then_good(BAD, b""), lambda audience: audience.total > 20)
    assert heard.lost == 2
    assert "503 gone" in heard.failures
    assert heard.answered.keys() == {("eu", "v1")}


def test_errors_are_counted_for_the_version_that_answers_them() -> None:
    heard = listen_to(then_good(FAULTY, BAD, FAULTY), lambda audience: audience.total > 20)
    assert (heard.lost, heard.errors) == (3, {("eu", "v3"): 2})


def test_without_a_prometheus_the_audience_is_asked_for_the_counters_of_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROMETHEUS", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    port = free_ports(1)
    audience = Audience(port, SystemClock())
    audience.answered |= Counter({("eu", "v1"): 5, ("us", "v1"): 70, ("us", "v3"): 7})
    audience.errors |= Counter({("us", "v3"): 3})
    source = CounterSource(port, tmp_path)
    source.write_file()
    [[name, definition]] = msgspec.yaml.decode(source.file.read_bytes())["sources"].items()
    asked = CanaryAnalysis(source=name, counters=msgspec.convert(source.counters(), dict[str, str | Counted]))
    secrets = SecretReader(tmp_path, tmp_path, lambda path, digest: None, {}, Inline())
    web = Web(HttpDefinition(address=definition["address"]), secrets, tmp_path)

    async def main() -> dict[str, object]:
        await source.start(audience, {})
        try:
            found = {}
            for counter, question in asked.questions(About("us", {}, "r1", 2), 2.0):
                [sample] = await JsonAddress(web, 10.0).ask(question)
                found[counter] = sample.value
        finally:
            await source.close()
        return found

    assert definition["type"] == "http"
    assert asyncio.run(main()) == {"requests": 80, "errors": 3}


def test_a_connection_that_is_closed_in_good_order_loses_nothing() -> None:
    heard = listen_to(then_good(*[CLOSING] * 10), lambda audience: audience.total > 30)
    assert heard.lost == 0
    assert heard.newest is not None
    assert (heard.newest.process, heard.newest.body) == (7, "hi")


def test_two_demos_with_the_same_luck_get_other_ports() -> None:
    one, other = PortRange(10, Chance(1)), PortRange(10, Chance(1))
    first = one.first
    assert abs(first - other.first) >= 10
    other.release()
    one.release()
    again = PortRange(10, Chance(1))
    assert again.first == first
    again.release()


def test_the_demo_commits_to_a_repository_of_its_own_wherever_it_lies(tmp_path: Path) -> None:
    def git(*arguments: str, folder: Path = tmp_path) -> str:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch=mine")
    folder = tmp_path / "play"
    folder.mkdir()
    (folder / "first").touch()
    repository = Repository(folder)

    async def main() -> str:
        await repository.make(["first"])
        return await repository.commit("More", {"second": "2"})

    commit = asyncio.run(main())
    assert git("rev-list", "--count", "--all") == "0"
    assert git("rev-parse", "HEAD", folder=folder) == commit
    assert git("ls-files", folder=folder).split() == ["first", "second"]
