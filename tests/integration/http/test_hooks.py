"""Who knows the secret can have the source looked at; nobody else, and nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.http.hooks import Hook
from tests.integration.http.served import Answer, Served, served

SECRET = "open sesame"
BODY = b'{"ref": "refs/heads/main", "after": "c0ffee", "repository": {"url": "http://evil.example"}}'


def signed(secret: str = SECRET, body: bytes = BODY) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Looked:
    """Counts looks, each of which lasts until it is let go."""

    def __init__(self) -> None:
        self.count = 0
        self.happened = asyncio.Event()
        self.end = asyncio.Event()
        self.end.set()

    async def look(self) -> None:
        self.count += 1
        self.happened.set()
        await self.end.wait()


async def posted(server: Served, headers: dict[str, str], body: bytes = BODY) -> Answer:
    lines = ["POST /hooks/git HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return await server.say(("\r\n".join(lines) + "\r\n\r\n").encode() + body)


@pytest.mark.parametrize(
    "headers",
    [
        {"X-GitHub-Event": "push", "X-Hub-Signature-256": f"sha256={signed()}"},
        {"X-Gitea-Event": "push", "X-Gitea-Signature": signed()},
        {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": SECRET},
    ],
    ids=["GitHub", "Gitea", "GitLab"],
)
def test_a_genuine_hook_has_the_source_looked_at(headers: dict[str, str], tmp_path: Path) -> None:
    async def main() -> None:
        looked = Looked()
        async with served(tmp_path, hook=Hook(lambda: SECRET, looked.look, SystemClock())) as server:
            assert (await posted(server, headers)).status == 202
            await looked.happened.wait()
            assert looked.count == 1

    asyncio.run(main())


def test_a_token_may_have_any_characters(tmp_path: Path) -> None:
    async def main() -> None:
        looked = Looked()
        async with served(tmp_path, hook=Hook(lambda: "Sésame", looked.look, SystemClock())) as server:
            assert (await posted(server, {"X-Gitlab-Token": "Sésame"})).status == 202

    asyncio.run(main())


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Hub-Signature-256": f"sha256={signed('another')}"},
        {"X-Hub-Signature-256": f"sha256={signed(body=BODY + b' ')}"},
        {"X-Hub-Signature-256": "sha256="},
        {"X-Hub-Signature-256": "sha256=\xe9"},
        {"X-Hub-Signature-256": "nonsense", "X-Gitlab-Token": SECRET},
        {"X-Hub-Signature": hmac.new(SECRET.encode(), BODY, hashlib.sha1).hexdigest()},
        {"X-Gitea-Signature": signed("")},
        {"X-Gitlab-Token": ""},
        {"X-Gitlab-Token": SECRET + "x"},
    ],
)
def test_a_hook_that_is_not_signed_with_the_secret_does_nothing(
    headers: dict[str, str], tmp_path: Path
) -> None:
    async def main() -> None:
        looked = Looked()
        async with served(tmp_path, hook=Hook(lambda: SECRET, looked.look, SystemClock())) as server:
            answer = await posted(server, headers)
            assert (answer.status, answer.json["code"]) == (401, "Unauthorized")
            assert SECRET not in answer.content.decode()
            assert looked.count == 0

    asyncio.run(main())


def test_a_secret_that_is_changed_counts_at_once_and_one_that_cannot_be_read_lets_nobody_in(
    tmp_path: Path,
) -> None:
    secrets = [SECRET]

    def secret() -> str:
        if not secrets:
            raise LehrError("the secret in hook.txt cannot be read")
        return secrets[0]

    async def main() -> None:
        async with served(tmp_path, hook=Hook(secret, Looked().look, SystemClock())) as server:
            secrets[0] = "another"
            assert (await posted(server, {"X-Gitlab-Token": SECRET})).status == 401
            assert (await posted(server, {"X-Gitlab-Token": "another"})).status == 202
            secrets.clear()
            assert (await posted(server, {"X-Gitlab-Token": "another"})).status == 401
            assert (await posted(server, {"X-Gitlab-Token": ""})).status == 401

    asyncio.run(main())


def test_without_a_secret_there_is_no_such_thing(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            answer = await posted(server, {"X-Gitlab-Token": ""})
            assert (answer.status, answer.json["code"]) == (404, "NotFound")

    asyncio.run(main())


def test_however_many_come_the_source_is_not_looked_at_twice_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lehr.http.hooks._BETWEEN_SECONDS", 0.01)

    async def main() -> None:
        looked = Looked()
        looked.end.clear()
        async with served(tmp_path, hook=Hook(lambda: SECRET, looked.look, SystemClock())) as server:
            for _ in range(20):
                assert (await posted(server, {"X-Gitlab-Token": SECRET})).status == 202
            assert looked.count == 1
            looked.happened.clear()
            looked.end.set()
            await looked.happened.wait()  # once more, for those that came meanwhile
            assert looked.count == 2

    asyncio.run(main())


def test_a_body_without_an_end_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lehr.http.hooks._MOST_BYTES", 1000)
    monkeypatch.setattr("lehr.http.hooks._BODY_SECONDS", 0.2)

    async def main() -> None:
        async with served(tmp_path, hook=Hook(lambda: SECRET, Looked().look, SystemClock())) as server:
            header = {"X-Gitea-Signature": signed()}
            assert (await posted(server, header, b"x" * 2000)).status == 413
            signature = f"X-Gitea-Signature: {signed()}"
            late = f"POST /hooks/git HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n{signature}"
            assert (await server.say(f"{late}\r\n\r\nx".encode())).status == 408

    asyncio.run(main())


@pytest.mark.parametrize(
    ("header", "status", "code"),
    [
        ({"Content-Type": "text/xml"}, 415, "UnsupportedMediaType"),
        ({"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}, 202, ""),
        ({"Content-Type": "application/JSON"}, 202, ""),
        ({"Content-Length": "100000000"}, 413, "ContentTooLarge"),
        ({"Content-Length": "9" * 19}, 413, "ContentTooLarge"),
    ],
)
def test_what_no_git_server_sends_is_refused_before_it_is_read(
    header: dict[str, str], status: int, code: str, tmp_path: Path
) -> None:
    async def main() -> None:
        async with served(tmp_path, hook=Hook(lambda: SECRET, Looked().look, SystemClock())) as server:
            given = {"Content-Length": "0", "X-Gitlab-Token": SECRET, **header}
            lines = [f"{name}: {value}" for name, value in given.items()]
            request = "\r\n".join(["POST /hooks/git HTTP/1.1", "Host: localhost", *lines])
            answer = await server.say(f"{request}\r\n\r\n".encode())
            assert answer.status == status
            assert not code or answer.json["code"] == code

    asyncio.run(main())


def test_a_hook_that_is_played_again_is_no_more_than_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lehr.http.hooks._BETWEEN_SECONDS", 3600.0)

    async def main() -> None:
        looked = Looked()
        async with served(tmp_path, hook=Hook(lambda: SECRET, looked.look, SystemClock())) as server:
            for _ in range(30):
                assert (await posted(server, {"X-Gitea-Signature": signed()})).status == 202
            assert looked.count == 1  # the next in an hour, for all of them

    asyncio.run(main())


def test_a_hook_comes_under_any_name_and_nothing_else_does(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, hook=Hook(lambda: SECRET, Looked().look, SystemClock())) as server:
            own = f"Host: lehr.example.org\r\nX-Gitlab-Token: {SECRET}\r\n"
            head = f"{own}Content-Length: 0\r\nConnection: close\r\n\r\n"
            assert (await server.say(f"POST /hooks/git HTTP/1.1\r\n{head}".encode())).status == 202
            assert (await server.say(f"GET /healthz HTTP/1.1\r\n{head}".encode())).status == 421

    asyncio.run(main())


def test_a_secret_that_is_empty_is_none() -> None:
    with pytest.raises(ValueError, match="empty"):
        Hook(lambda: "", Looked().look, SystemClock())
