"""What is asked over HTTP is answered, from the incarnation that is meant; errors say what to do."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from lehr.base.clock import iso
from lehr.model.asset import AssetId
from lehr.model.writes import Prune
from lehr.testing.conformance.store.subject import NOW, PARTITION, asset, publication
from tests.integration.http.served import ROOT, Answer, Served, served

Story = Callable[[Served], Awaitable[None]]


def play(folder: Path, story: Story) -> None:
    """Three incarnations: a and b; a changed; b gone, which refers to a."""

    async def main() -> None:
        async with served(folder) as server:
            commit = server.store.commit
            commit([publication(0, asset("a", "1"), asset("x/b", "1"), mentions={"x/b": ["a"]}, at=NOW)])
            commit([publication(1, asset("a", "2"), at=NOW + 10)])
            commit([publication(2, asset("c", "1"), at=NOW + 20)])
            await story(server)

    asyncio.run(main())


def ids(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.content
    return [item["id"] for item in answer.json["assets"]]


def test_partitions_and_incarnations_are_told(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        partitions = (await server.get("/v1/partitions")).json
        assert [(item["name"], item["newest"]["sequence"]) for item in partitions] == [(PARTITION, 3)]
        headers = (await server.get(f"{ROOT}/incarnations?limit=2")).json
        assert [item["sequence"] for item in headers] == [3, 2]
        for at, sequence in (("1", 1), ("latest", 3), ("previous", 2), (quote(iso(NOW + 15)), 2)):
            assert (await server.get(f"{ROOT}/incarnations/{at}")).json["sequence"] == sequence
        assert (await server.get("/healthz")).json == {"status": "ok", "partitions": 1, "running": False}

    play(tmp_path, story)


def test_an_asset_is_read_at_any_incarnation_and_as_of_a_time(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        for at, value in (
            ("1", "1"),
            ("latest", "2"),
            (quote(iso(NOW + 5)), "1"),
            (quote(iso(NOW + 11)), "2"),
        ):
            found = (await server.get(f"{ROOT}/assets/a?at={at}")).json
            assert (found["id"], found["payload"]) == ("a", {"value": value})
        assert (await server.get(f"{ROOT}/assets/x/b")).json["id"] == "x/b"
        assert (await server.get(f"{ROOT}/assets/x%2Fb?fields=payload.value")).json == {
            "id": "x/b",
            "type": asset("x").type,
            "payload": {"value": "1"},
        }

    play(tmp_path, story)


def test_listings_are_filtered_and_paged(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        assert ids(await server.get(f"{ROOT}/assets")) == ["a", "c", "x/b"]
        assert ids(await server.get(f"{ROOT}/assets?at=1")) == ["a", "x/b"]
        condition = quote("payload.value == '1' && id != 'c'")
        found = await server.get(f"{ROOT}/assets?filter={condition}")
        assert ids(found) == ["x/b"]
        assert found.json["plan"]["looked_at"] == 3
        first = await server.get(f"{ROOT}/assets?limit=2")
        server.publish([asset("a", "3"), asset("d")], [])
        rest = await server.get(f"{ROOT}/assets?limit=2&cursor={first.json['cursor']}")
        assert (ids(first) + ids(rest), rest.json["sequence"]) == (["a", "c", "x/b"], 3)
        assert ids(await server.get(f"{ROOT}/assets?types=no.Such")) == []
        assert ids(await server.get(f"{ROOT}/assets?selector=x/*")) == ["x/b"]
        assert ids(await server.get(f"{ROOT}/assets?selector=x/*&at=1&types=no.Such")) == []

    play(tmp_path, story)


def test_references_are_asked_backwards_and_incarnations_compared(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        [found] = (await server.get(f"{ROOT}/referrers?asset=a")).json
        assert (found["id"], found["path"]) == ("x/b", "/payload/0")
        server.publish([asset("y", "a")], [AssetId("x/b")], mentions={"y": ["a"]})
        for at, who in (("latest", "y"), ("3", ""), (quote(iso(NOW + 15)), "")):
            found = (await server.get(f"{ROOT}/referrers?asset=a&at={at}")).json
            assert [item["id"] for item in found] == who.split()
        compared = (await server.get(f"{ROOT}/compare?from=1&to=3")).json
        assert [(item["id"], item["kind"]) for item in compared["assets"]] == [
            ("a", "changed"),
            ("c", "added"),
        ]
        rows = (await server.get(f"{ROOT}/standing")).json
        assert [(row["id"], row["status"]) for row in rows][:1] == [("a", "NoTurnYet")]
        assert (await server.get(f"{ROOT}/standing?status=noturnyet")).json == rows
        assert (await server.get(f"{ROOT}/standing?status=Stalled")).json == []

    play(tmp_path, story)


def test_who_has_it_already_is_not_sent_it_again(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        target = f"{ROOT}/assets"
        tag = (await server.get(target)).headers["etag"]
        again = await server.get(target, [("If-None-Match", tag)])
        assert (again.status, again.content, again.headers["etag"]) == (304, b"", tag)
        server.publish([asset("d")])
        assert (await server.get(target, [("If-None-Match", tag)])).status == 200

    play(tmp_path, story)


def test_what_is_large_is_packed_for_who_can_unpack_it(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        server.publish([asset(f"many-{number}") for number in range(50)])
        plain = await server.get(f"{ROOT}/assets")
        packed = await server.get(f"{ROOT}/assets", [("Accept-Encoding", "gzip, br")])
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.content) == plain.content
        assert len(packed.content) < len(plain.content)

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ("/nowhere", 404, "NotFound"),
        ("/v1/partitions/", 404, "NotFound"),
        ("/hooks/git/", 404, "NotFound"),
        ("/v1/partitions/other/assets", 404, "NotFound"),
        (f"{ROOT}/assets/none", 404, "NotFound"),
        (f"{ROOT}/assets?at=9", 404, "NotFound"),
        (f"{ROOT}/assets?at={'9' * 40}", 404, "NotFound"),
        (f"{ROOT}/assets?at=2001-01-01", 404, "NotFound"),
        (f"{ROOT}/assets?at=yesterday", 400, "BadRequest"),
        (f"{ROOT}/assets?limit=0", 400, "BadRequest"),
        (f"{ROOT}/assets?filter=type%20=%201", 400, "BadRequest"),
        (f"{ROOT}/assets?filter={'(' * 5000}", 400, "BadRequest"),
        (f"{ROOT}/assets?cursor=x", 400, "BadRequest"),
        (f"{ROOT}/assets?fields=x", 400, "BadRequest"),
        (f"{ROOT}/standing?status=Staled", 400, "BadRequest"),
        (f"{ROOT}/assets?selector=,", 400, "BadRequest"),
        (f"{ROOT}/watch?selector=,", 400, "BadRequest"),
        (f"{ROOT}/referrers?asset=a&at=x", 400, "BadRequest"),
        (f"{ROOT}/compare?from=1&to=9", 404, "NotFound"),
        (f"{ROOT}/blame?asset=none", 404, "NotFound"),
        (f"{ROOT}/assets/%00", 400, "BadRequest"),
        (f"{ROOT}/assets?limit=1&limit=2", 400, "BadRequest"),
        (f"{ROOT}/watch?after=9", 410, "ListAgain"),
        (f"{ROOT}/watch?filter=1%2B", 400, "BadRequest"),
        (f"{ROOT}/watch?after={'9' * 40}", 410, "ListAgain"),
        (f"{ROOT}/watch?after=soon", 400, "BadRequest"),
        (f"{ROOT}/watch?after=2001-01-01", 404, "NotFound"),
        ("/v1/partitions/other/watch", 404, "NotFound"),
    ],
)
def test_every_error_is_a_problem_that_says_what_to_do(
    target: str, status: int, code: str, tmp_path: Path
) -> None:
    async def story(server: Served) -> None:
        answer = await server.get(target)
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json
        assert (answer.status, problem["status"], problem["code"]) == (status, status, code)
        assert problem["title"]
        assert problem["type"].endswith(code)
        assert problem.get("fix") or problem.get("errors")

    play(tmp_path, story)


def test_a_watch_begins_after_an_incarnation_or_a_time(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        for after, first in (("0", 1), ("2", 3), ("previous", 3), (quote(iso(NOW + 5)), 2), ("latest", 4)):
            reader, writer = await server.connect()
            writer.write(f"GET {ROOT}/watch?after={after} HTTP/1.0\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            if after == "latest":
                server.publish([asset("d")])
            assert (await reader.readline()).startswith(f'{{"sequence":{first},'.encode())

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        ("assets?filter=foo&selector=%3D&fields=none&at=soon", ["filter", "selector", "fields", "at"]),
        ("assets?filter=foo&cursor=none", ["filter", "cursor"]),
        ("assets?filter=foo&at=9", ["filter"]),
        ("assets/a?fields=none&at=soon", ["at", "fields"]),
        ("compare?from=soon&to=later", ["from", "to"]),
        ("watch?filter=foo&selector=%3D", ["filter", "selector"]),
    ],
)
def test_so_is_all_that_cannot_be_understood(target: str, wrong: list[str], tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        answer = await server.get(f"{ROOT}/{target}")
        assert answer.status == 400
        assert [item["parameter"] for item in answer.json["errors"]] == wrong

    play(tmp_path, story)


def test_all_that_is_wrong_with_parameters_is_told_at_once(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        problem = (await server.get(f"{ROOT}/assets?limit=x&none=1&filter={'x' * 5000}")).json
        assert [item["parameter"] for item in problem["errors"]] == ["limit", "none", "filter"]

    play(tmp_path, story)


def test_what_was_pruned_is_gone(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        server.store.commit([Prune(PARTITION, keep=1, before=float("inf"))])
        problem = (await server.get(f"{ROOT}/assets?at=1")).json
        assert (problem["code"], problem["error"]) == ("Pruned", "SDK106")
        answer = await server.get(f"{ROOT}/watch?after=1")
        assert (answer.status, answer.json["code"]) == (410, "ListAgain")

    play(tmp_path, story)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(method: str, tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        for target in (f"{ROOT}/assets", f"{ROOT}/assets/a", f"{ROOT}/watch", "/healthz"):
            answer = await server.get(target, method=method)
            assert (answer.status, answer.json["code"]) == (405, "MethodNotAllowed")

    play(tmp_path, story)
