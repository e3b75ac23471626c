"""Heavy filters are asked in child processes, clients take turns, and health is answered apart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from lehr.base.digest import Digest
from lehr.http.limits import Limits
from lehr.http.readers import _Turns
from lehr.http.sieves import Sieves
from lehr.model.asset import AssetId
from lehr.query.filters import Filter
from lehr.sdk.store import Row
from lehr.testing.conformance.store.subject import asset
from tests.integration.http.served import ROOT, served

LONG = "x" * 100_000
SLOW = " && ".join(["[1,2,3,4,5,6,7,8,9].all(a, " * 5 + "payload.value + payload.value != ''" + ")" * 5] * 4)
HEAVY = "[1,2,3].exists(x, payload.value == string(x))"


@pytest.fixture
def sieves() -> Iterator[Sieves]:
    made = Sieves(Limits(filter_seconds=0.3))
    yield made
    made.close()


def row(id: str, value: str) -> Row:
    body = b'{"payload":{"value":"' + value.encode() + b'"},"addons":{}}'
    return Row(AssetId(id), "test.Thing", body, Digest(""), None)


def test_a_child_answers_as_this_process_does(sieves: Sieves) -> None:
    rows = [row(f"a{number}", str(number)) for number in range(9)]
    here = Filter(HEAVY).sift(rows, 10**9, lambda: False)
    assert here.matched == (1, 2, 3)
    assert sieves.sift(Filter(HEAVY), rows, 10**9) == here
    assert sieves.sift(Filter(HEAVY), rows, 1).looked_at == 1


def test_an_asset_that_takes_too_long_has_no_answer_and_the_next_one_has(sieves: Sieves) -> None:
    found = sieves.sift(Filter(SLOW), [row("slow", LONG), row("other", "")], 10**9)
    assert (found.looked_at, found.matched, found.unanswered) == (1, (), 1)
    assert "too long" in found.why
    assert sieves.sift(Filter(HEAVY), [row("a", "1")], 10**9).matched == (0,)


def test_a_page_with_a_filter_that_takes_too_long_goes_on_at_its_cursor(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, Limits(filter_seconds=0.3, page_seconds=0.0)) as server:
            server.publish([asset("a", LONG), asset("b", "2")])
            asked = quote(f"payload.value == '2' || ({SLOW})", safe="")
            first = (await server.get(f"{ROOT}/assets?filter={asked}")).json
            assert (first["assets"], first["plan"]["unanswered"]) == ([], 1)
            second = (await server.get(f"{ROOT}/assets?filter={asked}&cursor={first['cursor']}")).json
            assert [item["id"] for item in second["assets"]] == ["b"]

    asyncio.run(main())


def test_health_is_answered_while_all_who_filter_are_busy(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, Limits(filter_seconds=5.0)) as server:
            server.publish([asset("a", LONG)])
            asked = quote(SLOW, safe="")
            busy = [asyncio.create_task(server.get(f"{ROOT}/assets?filter={asked}")) for _ in range(8)]
            for target in ("/healthz", "/v1/run", f"{ROOT}/assets/a"):
                assert (await server.get(target)).status == 200
            assert not any(task.done() for task in busy[2:])
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)

    asyncio.run(main())


def test_clients_take_turns_however_much_one_asks() -> None:
    async def main() -> list[str]:
        turns, order = _Turns(1), []

        async def ask(client: str) -> None:
            await turns.take(client)
            order.append(client)
            await asyncio.sleep(0)
            turns.leave()

        await turns.take("first")
        asking = [asyncio.create_task(ask(client)) for client in ("hog", "hog", "hog", "other")]
        await asyncio.sleep(0)
        asking[1].cancel()
        turns.leave()
        await asyncio.gather(*asking, return_exceptions=True)
        await turns.take("last")  # every place was given back
        return order

    assert asyncio.run(main()) == ["hog", "other", "hog"]
