"""Without the token of its state, a server answers nothing but probes; a browser signs in with a link."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError, TransientError
from lehr.client.http import HttpWatch
from lehr.control.http_servers import TOKEN_VARIABLE, make_token
from lehr.http.access import new_ticket
from lehr.http.catalogue import CATALOGUE
from lehr.http.openapi import EVENTS_PATH, WATCH_PATH
from lehr.http.remote import RemoteStore
from lehr.http.server import Address, Running
from lehr.http.target_selection import SELECT_PATH
from lehr.query.run_state import idle
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import PARTITION, asset, publication
from lehr.wiring.program import Answering, answering
from tests.integration.http.served import Answer, parsed

HTML = "text/html,*/*;q=0.8"


def ticket_of(state: Path) -> str:
    return new_ticket(make_token(state), SystemClock().now())


@contextlib.asynccontextmanager
async def protected(state: Path, *, public_read: bool = False) -> AsyncIterator[Running]:
    """A server of a state with one asset."""
    store = SqliteStore(state / "state.sqlite")
    store.commit([publication(0, asset("a", "1"))])
    store.close()
    how = Answering(Address("127.0.0.1", 0), public_read=public_read)
    async with answering(how, state, None, lambda: idle(0.0)) as server:
        yield server


async def asked(server: Running, target: str, method: str = "GET", **headers: str) -> Answer:
    reader, writer = await asyncio.open_connection(server.address.host, server.address.port)
    lines = [f"{method} {target} HTTP/1.1", f"host: {server.address}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    try:
        return parsed(await reader.read())
    finally:
        writer.close()


OTHERS = (WATCH_PATH, EVENTS_PATH, "/", "/p/x", "/v1/run", "/openapi.json", "/nothing")
PATHS = (*(item.path for item in CATALOGUE), *OTHERS)


def test_without_the_token_no_path_answers(tmp_path: Path) -> None:
    async def main() -> None:
        async with protected(tmp_path) as server:
            for path in PATHS:
                for method in ("GET", "HEAD", "POST", "DELETE"):
                    answer = await asked(server, path.replace("{partition}", PARTITION), method)
                    assert answer.status == 401, (method, path)
            answer = await asked(server, SELECT_PATH, "POST", content_type="application/json")
            assert (answer.status, answer.json["error"]) == (401, "HTP138")
            assert "lehr state token" in answer.json["fix"]

    asyncio.run(main())


def test_with_it_all_clients_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with protected(tmp_path) as server:
            token = make_token(tmp_path)
            answer = await asked(server, "/v1/partitions", authorization=f"Bearer {token}")
            assert [item["name"] for item in answer.json] == [PARTITION]
            listing = await HttpWatch(server.url, PARTITION, token=lambda: token).list()
            assert [item.id for item in listing.assets] == ["a"]
            store = RemoteStore(server.url, lambda: token)
            assert await asyncio.to_thread(store.intent.partitions) == [PARTITION]
            store.close()

    asyncio.run(main())


def test_clients_without_it_are_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)

    async def main() -> None:
        async with protected(tmp_path) as server:
            with pytest.raises(LehrError, match="token") as found:
                await HttpWatch(server.url, PARTITION).list()
            assert "LEHR_TOKEN" in found.value.fix
            store = RemoteStore(server.url, lambda: "other")
            with pytest.raises(LehrError, match="token") as refused:
                await asyncio.to_thread(store.intent.partitions)
            store.close()
            assert "not the one of its state" in refused.value.why

    asyncio.run(main())


def test_a_client_that_asked_for_the_token_too_early_asks_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with protected(tmp_path) as server:
            found = iter(["", make_token(tmp_path)])
            store = RemoteStore(server.url, lambda: next(found, make_token(tmp_path)))
            assert await asyncio.to_thread(store.intent.partitions) == [PARTITION]
            store.close()
            again = iter(["", make_token(tmp_path)])
            with pytest.raises(TransientError):  # after which a reflector lists again
                await HttpWatch(server.url, PARTITION, token=lambda: next(again)).list()

    asyncio.run(main())


def test_probes_need_none(tmp_path: Path) -> None:
    async def main() -> None:
        async with protected(tmp_path) as server:
            assert (await asked(server, "/healthz")).status == 200

    asyncio.run(main())


def test_a_browser_signs_in_with_a_link_and_stays_signed_in(tmp_path: Path) -> None:
    async def main() -> None:
        async with protected(tmp_path) as server:
            refused = await asked(server, "/", accept=HTML)
            assert refused.status == 401
            assert "<code>lehr open</code>" in refused.content.decode()
            style = re.search(r'href="(/static/[^"]+css)"', refused.content.decode())
            assert style is not None
            assert (await asked(server, style[1])).status == 200
            ticket = ticket_of(tmp_path)
            admitted = await asked(
                server, f"/sign-in?ticket={ticket}&to=/p/{PARTITION}/assets/a", accept=HTML
            )
            assert admitted.status == 200
            assert f"url=/p/{PARTITION}/assets/a" in admitted.content.decode()
            cookie = admitted.headers["set-cookie"].partition(";")[0]
            page = await asked(server, f"/p/{PARTITION}/assets/a", accept=HTML, cookie=cookie)
            assert page.status == 200
            again = await asked(server, f"/sign-in?ticket={ticket}", accept=HTML)
            assert again.status == 401
            assert "used already" in again.content.decode()

    asyncio.run(main())


@pytest.mark.parametrize(
    "to",
    ["//example.org", "/\\example.org", "https://example.org", "/%09/example.org", "javascript:alert(1)", ""],
)
def test_a_link_leads_to_no_other_server(tmp_path: Path, to: str) -> None:
    async def main() -> None:
        async with protected(tmp_path) as server:
            ticket = ticket_of(tmp_path)
            answer = await asked(server, f"/sign-in?ticket={ticket}&to={to}", accept=HTML)
            assert 'url=/"' in answer.content.decode()

    asyncio.run(main())


def test_markup_in_a_link_stays_text(tmp_path: Path) -> None:
    async def main() -> None:
        async with protected(tmp_path) as server:
            ticket = ticket_of(tmp_path)
            answer = await asked(server, f"/sign-in?ticket={ticket}&to=/%22%3E%3Cscript%3E", accept=HTML)
            assert "<script>" not in answer.content.decode()

    asyncio.run(main())


def test_public_read_admits_everyone(tmp_path: Path) -> None:
    async def main() -> None:
        async with protected(tmp_path, public_read=True) as server:
            assert (await asked(server, "/v1/partitions")).status == 200
            assert (await asked(server, "/sign-in")).status == 200
            answer = await asked(server, f"/sign-in?ticket={ticket_of(tmp_path)}")
            assert (answer.status, "set-cookie" in answer.headers) == (200, True)

    asyncio.run(main())


@pytest.mark.parametrize("query", ["what-if?asset=a&if=retry", "unblock?asset=a", "plan?selector=all"])
def test_dry_runs_need_the_token_also_with_public_read(tmp_path: Path, query: str) -> None:
    async def main() -> None:
        async with protected(tmp_path, public_read=True) as server:
            path = f"/v1/partitions/{PARTITION}/{query}"
            for authorization in ("", "Bearer wrong"):
                refused = await asked(server, path, authorization=authorization)
                assert (refused.status, refused.json["error"]) == (401, "HTP146")
            given = f"Bearer {make_token(tmp_path)}"
            answered = await asked(server, path, authorization=given)  # this state is of no workspace
            assert (answered.status, answered.json["error"]) == (404, "WIR110")

    asyncio.run(main())


def test_pages_stay_admitted_when_the_server_is_restarted(tmp_path: Path) -> None:
    async def main() -> None:
        async with protected(tmp_path) as server:
            ticket = ticket_of(tmp_path)
            cookie = (
                (await asked(server, f"/sign-in?ticket={ticket}")).headers["set-cookie"].partition(";")[0]
            )
        how = Answering(Address("127.0.0.1", 0))
        async with answering(how, tmp_path, None, lambda: idle(0.0)) as again:
            assert (await asked(again, "/v1/partitions", cookie=cookie)).status == 200

    asyncio.run(main())
