"""The screen of what would unblock an asset, over a workspace whose production can be compared."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lehr.control.http_servers import make_token
from lehr.http.server import Address
from lehr.model.asset import Partition
from lehr.model.control import Control, ControlKind
from lehr.model.selector import parse_selector
from lehr.model.writes import SetControl
from lehr.query.run_state import idle
from lehr.store.sqlite import SqliteStore
from lehr.wiring.program import Answering, answering
from tests.integration.http.served import Answer, parsed
from tests.integration.page.test_page import shape

MARKUP = "<script>alert(1)</script>"
ASSETS = """\
id: page
type: lehr.File
payload: {path: out/page, content: "new\\n"}
---
id: hours
type: lehr.Calendar
payload:
  select: {ids: [page, other]}
  timezone: UTC
  closed: [{from: "2020-01-01T00:00", to: "2099-01-01T00:00", reason: stocktaking}]
  override: true
---
id: strict
type: lehr.Calendar
payload:
  select: {ids: [other]}
  timezone: UTC
  closed: [{from: "2020-01-01T00:00", to: "2099-01-01T00:00", reason: never}]
---
id: other
type: lehr.File
payload: {path: out/other, content: "new\\n"}
---
id: same
type: lehr.File
payload: {path: out/same, content: "same\\n"}
---
id: broken
type: lehr.File
payload: {path: out/folder, content: "new\\n"}
"""


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of a workspace: `page` is frozen and outside its hours, no command unblocks `other`."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "assets").mkdir()
    (folder / "out/folder").mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: shop\n")
    (folder / "assets/all.yaml").write_text(ASSETS)
    command = [sys.executable, "-m", "lehr", "run", "--once", "--state", "state"]
    subprocess.run(command, cwd=folder, timeout=150, capture_output=True, check=False)  # `broken` fails
    store = SqliteStore(folder / "state/state.sqlite")
    freeze = Control(
        id="f1",
        kind=ControlKind.FREEZE,
        partition=Partition("shop"),
        selector=parse_selector("page"),
        reason=f"market day {MARKUP}",
        actor="ana",
        at=1.0,
    )
    store.commit([SetControl(freeze)])
    store.close()
    return folder / "state"


def ask(state: Path, *paths: str, token: bool = True, public_read: bool = False) -> list[Answer]:
    async def one(port: int, path: str) -> Answer:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        lines = [f"GET /p/shop{path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
        lines += [f"Authorization: Bearer {make_token(state)}"] if token else []
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = parsed(await reader.read())
        writer.close()
        return answer

    async def main() -> list[Answer]:
        how = Answering(Address("127.0.0.1", 0), public_read=public_read)
        async with answering(how, state, None, lambda: idle(0.0)) as server:
            return [await one(server.address.port, path) for path in paths]

    return asyncio.run(main())


def text_of(answer: Answer) -> str:
    """What a reader sees, on one line."""
    return " ".join(shape(answer).text.split())


def test_a_blocked_asset_leads_to_what_would_unblock_it(blocked: Path) -> None:
    asset, answer = ask(blocked, "/assets/page", "/unblock/page")
    assert "/p/shop/unblock/page" in shape(asset).links
    assert answer.status == 200
    text = text_of(answer)
    assert "▲ What would unblock page" in text
    assert "it would wait: freeze/f1: frozen by ana: market day" in text
    assert "Run all of these; fewer are not enough" in text
    assert "lehr unfreeze id=page" in text
    assert "lehr override page --check hours --reason TEXT" in text
    assert "Then it would be pushed." in text
    assert "/p/shop/assets/page" in shape(answer).links
    assert not (blocked.parent / "out/page").exists()


def test_it_is_not_refreshed_automatically(blocked: Path) -> None:
    asset, answer, missing = ask(blocked, "/assets/page", "/unblock/page", "/unblock/nothing")
    assert b"data-events=" in asset.content
    for still in (answer, missing):
        assert re.search(rb"<body[^>]*>", still.content)[0] == b"<body data-still>"  # type: ignore[index]


def test_the_other_ends_of_the_search_are_shown(blocked: Path) -> None:
    same, other, broken = map(text_of, ask(blocked, "/unblock/same", "/unblock/other", "/unblock/broken"))
    assert "● Nothing blocks same" in same
    assert "it would be as intended, without a push" in same
    assert "No commands unblock it" in other
    assert "After all of these, it would wait: calendar/strict" in other
    assert "lehr retry broken" in broken
    assert "Its last push failed" in broken


def test_what_blocks_nothing_has_no_link_and_what_cannot_be_asked_is_a_page(blocked: Path) -> None:
    same, missing, hours = ask(blocked, "/assets/same", "/unblock/nothing", "/unblock/hours")
    assert "/p/shop/unblock/same" not in shape(same).links
    assert (missing.status, hours.status) == (404, 400)
    assert "has no asset nothing" in text_of(missing)
    assert "has no production" in text_of(hours)


def test_readers_without_the_token_are_not_shown_the_link(blocked: Path) -> None:
    asset, answer = ask(blocked, "/assets/page", "/unblock/page", token=False, public_read=True)
    assert (asset.status, answer.status) == (200, 401)
    assert "/p/shop/unblock/page" not in shape(asset).links
    assert "only to the token" in text_of(answer)
    [asset] = ask(blocked, "/assets/page", public_read=True)
    assert "/p/shop/unblock/page" in shape(asset).links


def test_controls_are_listed_with_their_selectors_as_text(blocked: Path) -> None:
    [answer] = ask(blocked, "/controls")
    assert "freeze id=page ana" in " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_without_the_workspace_there_is_no_link(blocked: Path, tmp_path: Path) -> None:
    """As on another machine that has the store, or after the workspace was moved."""
    shutil.copytree(blocked, tmp_path / "state")
    (tmp_path / "state/workspace.json").unlink()
    asset, answer = ask(tmp_path / "state", "/assets/page", "/unblock/page")
    assert (asset.status, answer.status) == (200, 404)
    assert "/p/shop/unblock/page" not in shape(asset).links
    assert "cannot compare production of shop" in text_of(answer)
