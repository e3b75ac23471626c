"""`POST /v1/select`: the question and the answer of `lehr select -o json`, within limits."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from click.testing import CliRunner

from lehr.cli.main import cli
from lehr.http.limits import Limits
from lehr.http.selection_service import HttpSelectionService
from lehr.testing.conformance.target_selection import RULES, Rule, Subject
from tests.integration.http.served import Answer, Served, served

JSON = ("Content-Type", "application/json")
QUESTION = {
    "units": [{"id": "b"}, {"id": "a", "labels": {"stage": "dev"}}, {"id": "c", "held": "it is pinned"}],
    "selection": {"waves": [{"units": 1, "soak_seconds": 60}, {}], "order": "id", "at_most": "50%"},
    "now": 1000,
}


async def asked(server: Served, body: Any, *headers: tuple[str, str], target: str = "/v1/select") -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
    lines += [f"Content-Length: {len(content)}"] * all(name != "Transfer-Encoding" for name, _ in headers)
    lines += [f"{name}: {value}" for name, value in headers or [JSON]]
    return await server.say(("\r\n".join(lines) + "\r\n\r\n").encode() + content)


def play(folder: Path, story: Callable[[Served], Awaitable[None]], limits: Limits | None = None) -> None:
    async def main() -> None:
        async with served(folder, limits) as server:
            await story(server)

    asyncio.run(main())


def test_the_answer_is_that_of_the_command(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        answer = await asked(server, QUESTION)
        assert answer.status == 200, answer.content
        done = CliRunner().invoke(cli, ["select", "-", "-o", "json"], input=json.dumps(QUESTION))
        assert answer.json == json.loads(done.stdout)
        assert answer.json["update"] == ["a"]
        described = (await server.get("/openapi.json")).json
        content = described["paths"]["/v1/select"]["post"]["responses"]["200"]["content"]
        schema = {**content["application/json"]["schema"], "components": described["components"]}
        jsonschema_rs.validate(schema, answer.json)

    play(tmp_path, story)


def test_all_problems_are_answered_at_once_each_with_its_path(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        answer = await asked(
            server,
            {"units": [{"id": ""}, {"id": "a", "labels": {"x": 1}}], "selection": {"at_most": 0}, "soak": 1},
        )
        assert (answer.status, answer.json["code"], answer.json["error"]) == (400, "BadRequest", "HTP132")
        assert {item["parameter"] for item in answer.json["errors"]} == {
            "/units/0/id",
            "/units/1/labels/x",
            "/selection/at_most",
            "/soak",
        }
        answer = await asked(
            server,
            {
                "units": [{"id": "a"}, {"id": "a"}, {"id": "b", "validated_at": 3}],
                "selection": {"order": "labels.size"},
            },
        )
        assert [item["parameter"] for item in answer.json["errors"]] == [
            "/units/0",
            "/units/1",
            "/units/2",
            "/selection/order",
        ]

    play(tmp_path, story)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"{", b'{"units": NaN}', b"\xff", b'{"units": [], "units": []}', b"[" * 5000],
)
def test_a_body_that_is_not_a_question_is_refused(body: bytes, tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        answer = await asked(server, body)
        assert (answer.status, answer.json["error"]) == (400, "HTP132")
        assert answer.json["errors"]

    play(tmp_path, story)


def test_many_problems_are_counted(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        answer = await asked(server, {"units": [{"id": "same"}] * 500})
        assert len(answer.json["errors"]) == 100
        assert answer.json["title"].endswith("400 more problems")

    play(tmp_path, story)


def test_a_web_page_cannot_ask(tmp_path: Path) -> None:
    """Browsers send no other content to another origin without asking first."""

    async def story(server: Served) -> None:
        for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = await asked(server, QUESTION, ("Content-Type", media))
            assert (answer.status, answer.json["error"]) == (415, "HTP133")

    play(tmp_path, story)


def test_questions_are_bounded_in_size(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        answer = await asked(server, b" " * 1001)
        assert (answer.status, answer.json["error"]) == (413, "HTP134")
        chunks = b"1f4\r\n" + b" " * 500 + b"\r\n"
        answer = await asked(server, chunks * 3, JSON, ("Transfer-Encoding", "chunked"))
        assert (answer.status, answer.json["error"]) == (413, "HTP134")

    play(tmp_path, story, Limits(question_bytes=1000))


def test_questions_are_bounded_in_time_and_number(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        _reader, writer = await server.connect()
        head = "POST /v1/select HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        slow = (head + "Content-Length: 100\r\n\r\n{").encode()
        writer.write(slow)
        while (answer := await asked(server, QUESTION)).status != 503:
            assert answer.status == 200
        assert answer.json["error"] == "HTP129"
        writer.transport.abort()
        while (answer := await asked(server, QUESTION)).status != 200:
            assert answer.status == 503

    play(tmp_path, story, Limits(questions=1))

    async def late(server: Served) -> None:
        head = "POST /v1/select HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        answer = await server.say((head + "Content-Length: 100\r\n\r\n{").encode())
        assert (answer.status, answer.json["error"]) == (408, "HTP130")

    play(tmp_path, late, Limits(body_seconds=0.05))


def test_answers_are_bounded_in_time(tmp_path: Path) -> None:
    units = [{"id": f"u{number}"} for number in range(2000)]

    async def story(server: Served) -> None:
        answer = await asked(server, {"units": units, "selection": {"order": "id"}})
        assert (answer.status, answer.json["error"]) == (408, "HTP131")

    play(tmp_path, story, Limits(select_seconds=0.0))


def test_a_question_has_no_parameters(tmp_path: Path) -> None:
    async def story(server: Served) -> None:
        answer = await asked(server, QUESTION, target="/v1/select?units=3")
        assert (answer.status, answer.json["errors"][0]["parameter"]) == (400, "units")
        assert (await server.get("/v1/select")).status == 405

    play(tmp_path, story)


def test_the_how_to_shows_what_is_answered(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "choose-what-is-updated-next.md"
    [(body, shown)] = re.findall(r"-d '([^']+)' http://127.0.0.1:8470/v1/select\n(.*)", page.read_text())

    async def story(server: Served) -> None:
        assert (await asked(server, body.encode())).content.decode() == shown

    play(tmp_path, story)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_server_is_a_selection_service_itself(rule: Rule, tmp_path: Path) -> None:
    waves = [{"units": 1, "soak_seconds": 60}, {"units": "50%"}, {}]

    async def story(server: Served) -> None:
        url = f"{server.running.url}/v1/select"
        await rule(Subject(lambda: HttpSelectionService(url), {"waves": waves, "order": "id"}))

    play(tmp_path, story)
