"""Controls over HTTP: all of them, or page by page, with selectors as people type them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from lehr.model.control import Control, ControlKind
from lehr.model.selector import parse_selector
from lehr.model.writes import LiftControl, SetControl
from lehr.testing.conformance.store.subject import PARTITION, asset
from tests.integration.http.served import ROOT, Served, served

SELECTORS = ("all", "id=a", "label:team=web,type=test.*", "id=b", "id=c-*")


def control(number: int, selector: str) -> Control:
    parsed = parse_selector(selector)
    kind, at = ControlKind.FREEZE, float(number)
    return Control(
        id=f"c{number}", kind=kind, partition=PARTITION, selector=parsed, reason="r", actor="ana", at=at
    )


async def page(server: Served, query: str) -> Any:
    answer = await server.get(f"{ROOT}/controls?{query}")
    assert answer.status == 200, answer.content
    return answer.json


def fill(server: Served) -> None:
    server.publish([asset("a", "x")])
    for number, selector in enumerate(SELECTORS):
        server.store.commit([SetControl(control(number, selector))])


def test_selectors_are_text_as_well(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            fill(server)
            found = await page(server, "")
            assert [item["selects"] for item in found["controls"]] == [
                str(parse_selector(text)) for text in SELECTORS
            ]
            assert found["controls"][1]["selector"]["ids"] == ["a"]
            assert found["cursor"] == ""

    asyncio.run(main())


def test_pages_miss_and_repeat_nothing_while_controls_are_lifted(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            fill(server)
            first = await page(server, "limit=2")
            assert ([item["id"] for item in first["controls"]], first["total"]) == (["c0", "c1"], 5)
            server.store.commit([LiftControl(PARTITION, "c1", 10.0)])
            second = await page(server, f"limit=2&cursor={first['cursor']}")
            assert ([item["id"] for item in second["controls"]], second["total"]) == (["c2", "c3"], 4)
            third = await page(server, f"limit=2&cursor={second['cursor']}")
            assert ([item["id"] for item in third["controls"]], third["cursor"]) == (["c4"], "")

    asyncio.run(main())


def test_a_cursor_is_of_one_time(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            fill(server)
            then = await page(server, "limit=1&at=1970-01-01T00:00:03Z")
            assert [item["id"] for item in then["controls"]] == ["c0"]
            refused = await server.get(f"{ROOT}/controls?cursor={then['cursor']}")
            assert (refused.status, refused.json["error"]) == (400, "QRY126")

    asyncio.run(main())
