"""HTTP as spoken by clients that speak it well, badly or with bad intent."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lehr.http.limits import Limits
from lehr.http.request_headers import accepts, host_is_known, knows, takes_gzip
from lehr.testing.conformance.store.subject import PARTITION, asset
from tests.integration.http.served import ROOT, Answer, Served, parsed, served

HOST = "Host: 127.0.0.1"


def play(folder: Path, story: Callable[[Served], Awaitable[None]]) -> None:
    async def main() -> None:
        async with served(folder) as server:
            server.publish([asset(f"x/{number}") for number in range(60)])
            await story(server)

    asyncio.run(main())


def told(answer: Answer) -> tuple[int, str]:
    """Status and code of a problem that is whole."""
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["status"] == answer.status
    assert answer.json["title"]
    return answer.status, answer.json["code"]


@pytest.mark.parametrize(
    "path", ["/healthz", "/openapi.json", "/v1/partitions", f"{ROOT}/assets", f"{ROOT}/watch"]
)
def test_head_is_get_without_its_content(path: str, tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        head = await server.get(path, method="HEAD")
        assert (head.status, head.content) == (200, b"")
        if not path.endswith("watch"):
            whole = await server.get(path)
            assert head.headers["content-length"] == str(len(whole.content))
            assert head.headers.get("etag") == whole.headers.get("etag")

    play(tmp_path, story)


def test_the_head_of_an_error_is_that_error(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        answer = await server.get(f"{ROOT}/assets/none", method="HEAD")
        assert (answer.status, answer.content) == (404, b"")
        assert answer.headers["content-type"] == "application/problem+json"

    play(tmp_path, story)


REFUSED: list[tuple[str, dict[str, str], int, str]] = [
    (f"{ROOT}/assets", {"Accept": "text/html"}, 406, "NotAcceptable"),
    (f"{ROOT}/watch", {"Accept": "text/event-stream"}, 406, "NotAcceptable"),
    (f"{ROOT}/assets", {"Accept": "application/json;q=0, text/*"}, 406, "NotAcceptable"),
    (f"{ROOT}/assets", {"Content-Length": "1"}, 413, "ContentTooLarge"),
    (f"{ROOT}/watch", {"Transfer-Encoding": "chunked"}, 413, "ContentTooLarge"),
    (f"{ROOT}/assets?filter={'x' * 20_000}", {}, 414, "UriTooLong"),
    (f"/{'x' * 20_000}", {}, 414, "UriTooLong"),
    ("/healthz", {"X": "x" * 20_000}, 431, "TooLong"),
    ("/healthz?more=1", {}, 400, "BadRequest"),
    ("/openapi.json?more=1", {}, 400, "BadRequest"),
    ("/v1/partitions?more=1", {}, 400, "BadRequest"),
    (f"{ROOT}/watch?more=1", {}, 400, "BadRequest"),
    # Paths lead to what is served, and nowhere else.
    ("/../../etc/passwd", {}, 404, "NotFound"),
    ("/v1/partitions/../../etc/passwd", {}, 404, "NotFound"),
    ("/v1/partitions/..%2f..%2fetc%2fpasswd", {}, 404, "NotFound"),
    (f"{ROOT}/assets/..%2f..%2f..%2fetc%2fpasswd", {}, 404, "NotFound"),
    (f"{ROOT}/assets/../../../etc/passwd", {}, 404, "NotFound"),
    ("//etc/passwd", {}, 404, "NotFound"),
    ("http://elsewhere.example/healthz", {}, 404, "NotFound"),
    ("/v1/partitions/%2e%2e", {}, 404, "NotFound"),
    ("/v1/imported/..%2f..%2fetc/assets", {}, 404, "NotFound"),
    # Nor does anything fail on the way.
    (f"{ROOT}/assets/%00", {}, 400, "BadRequest"),
    (f"{ROOT}/assets?filter=%00", {}, 400, "BadRequest"),
    (f"{ROOT}/assets?%00=x", {}, 400, "BadRequest"),
    (f"{ROOT}/assets/%ff%fe", {}, 404, "NotFound"),
    (f"{ROOT}/assets/%ed%a0%80", {}, 404, "NotFound"),
    (f"{ROOT}/assets/%", {}, 404, "NotFound"),
    (f"{ROOT}/assets?filter=%ff", {}, 400, "BadRequest"),
    (f"{ROOT}/incarnations/%D9%A3", {}, 400, "BadRequest"),
    (f"{ROOT}/headers/{'9' * 30}", {}, 400, "BadRequest"),
    (f"{ROOT}/prunable?keep=1&before=nan", {}, 400, "BadRequest"),
    (f"{ROOT}/assets?cursor={'A' * 4000}", {}, 400, "BadRequest"),
]


def test_what_cannot_be_answered_says_why(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        for target, headers, status, code in REFUSED:
            answer = await server.get(target, list(headers.items()))
            assert told(answer) == (status, code), target
        assert (await server.get("/healthz")).status == 200

    play(tmp_path, story)


NO_REQUESTS = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
    b"GET /healthz HTTP/1.1\r\n\r\n",  # without a Host
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: elsewhere.example\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: \x00\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


def test_what_is_no_request_is_told_so(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        for request in NO_REQUESTS:
            assert told(await server.say(request + b"\r\n")) == (400, "BadRequest"), request

    play(tmp_path, story)


def test_requests_that_come_in_a_row_are_answered_in_that_order(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        targets = ["/v1/partitions", f"{ROOT}/assets/x/1", "/nowhere", f"{ROOT}/assets/x/2"]
        asked = [f"GET {target} HTTP/1.1\r\n{HOST}\r\n" for target in targets]
        reader, writer = await server.connect()
        writer.write(("\r\n".join([*asked, ""])).encode())
        found = []
        for _ in targets:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(parsed(head).headers["content-length"])
            found.append(parsed(head + await reader.readexactly(length)))
        assert [answer.status for answer in found] == [200, 200, 404, 200]
        assert [found[1].json["id"], found[3].json["id"]] == ["x/1", "x/2"]

    play(tmp_path, story)


def test_http_1_0_is_answered_and_its_watches_end_with_the_connection(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        answer = await server.say(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert (answer.status, answer.json["status"]) == (200, "ok")
        reader, writer = await server.connect()
        writer.write(f"GET {ROOT}/watch HTTP/1.0\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"chunked" not in head
        assert (await reader.readline()).startswith(b'{"sequence":1,')
        writer.write_eof()

    play(tmp_path, story)


def test_gzip_comes_to_who_asks_for_it_alone(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        plain = await server.get(f"{ROOT}/assets")
        for header, packed in (
            ("gzip", True),
            ("br, GZIP;q=0.5", True),
            ("gzip;q=0", False),
            ("xgzip", False),
        ):
            answer = await server.get(f"{ROOT}/assets", [("Accept-Encoding", header)])
            assert ("content-encoding" in answer.headers) == packed
            content = gzip.decompress(answer.content) if packed else answer.content
            assert content == plain.content
            assert answer.headers["vary"] == "accept-encoding"
        not_worth_it = await server.get(f"{ROOT}/assets/x/1", [("Accept-Encoding", "gzip")])
        assert "content-encoding" not in not_worth_it.headers

    play(tmp_path, story)


def test_what_is_known_already_is_told_by_its_tag(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        tag = (await server.get(f"{ROOT}/assets")).headers["etag"]
        for header, status in (
            (tag, 304),
            (f'"other", {tag}', 304),
            (tag[2:], 304),
            ("*", 304),
            ('"x"', 200),
        ):
            answer = await server.get(f"{ROOT}/assets", [("If-None-Match", header)])
            assert answer.status == status, header
        answer = await server.get(f"{ROOT}/assets/none", [("If-None-Match", "*")])
        assert answer.status == 404

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:8470", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("shop.localhost:8470", True),
        ("[::1]:8470", True),
        ("[::1]", True),
        ("192.0.2.7", True),
        ("lehr.example.org", True),
        ("lehr.example.org:443", True),
        ("evil.example", False),
        ("evil.example:8470", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_a_page_of_elsewhere_cannot_turn_its_name_to_this_machine(host: str, known: bool) -> None:
    assert host_is_known(host, {"lehr.example.org"}) == known


def test_under_a_name_of_elsewhere_nothing_is_read(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        for target in ("/healthz", f"{ROOT}/assets", f"{ROOT}/watch", "/nowhere"):
            request = f"GET {target} HTTP/1.1\r\nHost: evil.example:80\r\nConnection: close\r\n\r\n"
            answer = await server.say(request.encode())
            assert told(answer) == (421, "WrongHost")
            assert "--server-name" in answer.json["fix"]
            assert PARTITION not in answer.json["detail"]

    play(tmp_path, story)


def test_media_types_are_taken_as_they_are_wanted() -> None:
    offered = ("application/json",)
    for header in (
        "",
        "*/*",
        "application/*",
        "text/html, */*;q=0.1",
        "application/json; charset=utf-8",
        ";;,,",
    ):
        assert accepts(header, offered), header
    for header in (
        "text/html",
        "application/json;q=0",
        "*/*, application/json;q=0.0",
        "application/*;q=0, */*",
    ):
        assert not accepts(header, offered), header
    assert takes_gzip("gzip;q=high")
    assert not takes_gzip("*")
    assert not knows("", "1")


def test_a_connection_is_kept_for_the_next_request_and_not_for_ever(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, Limits(head_seconds=0.2, idle_seconds=1)) as server:
            reader, writer = await server.connect()
            for _ in range(3):
                writer.write(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n\r\n".encode())
                head = parsed(await reader.readuntil(b"\r\n\r\n"))
                await reader.readexactly(int(head.headers["content-length"]))
            writer.write(b"GET /healthz")  # and no more
            assert parsed(await reader.read()).status == 408
            idle, writer = await server.connect()
            writer.write(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n\r\n".encode())
            assert (await idle.read()).endswith(b"}")  # and then nobody waits

    asyncio.run(main())
