"""A dry run that hangs ends with a clear problem, and delays nothing but other dry runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lehr.base.blocking import abandoned
from lehr.base.clock import SystemClock
from lehr.cli.main import cli
from lehr.control.http_servers import make_token
from lehr.control.state_folder import write_record
from lehr.http import dry_run_queue
from lehr.http.limits import Limits
from lehr.http.server import Address
from lehr.model.asset import Partition
from lehr.model.writes import TakeLease
from lehr.plugins.file.plugin import FilePlugin
from lehr.query.run_state import idle
from lehr.sdk.plugin import AssetPlugin
from lehr.store.sqlite import SqliteStore
from lehr.wiring.program import Answering, answering
from tests.integration.http.served import Answer, parsed

FILES = 1001


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a workspace with many files, in production."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "assets").mkdir()
    (folder / "lehr.yaml").write_text("partition: shop\n")
    files = (
        f"- {{id: f/{n}, type: lehr.File, payload: {{path: out/{n}, content: x}}}}" for n in range(FILES)
    )
    (folder / "assets/all.yaml").write_text("\n".join(files))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        CliRunner().invoke(cli, ["run", "--once", "--state", "state"])
    return folder / "state"


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends what hangs; set at the latest when the test ends."""
    event = threading.Event()
    yield event
    event.set()


Ask = Callable[[str], Awaitable[Answer]]
"""The answer at a path below that of the partitions."""


def serve(state: Path, main: Callable[[Ask], Awaitable[None]]) -> None:
    """Run `main` with a server."""

    async def run() -> None:
        how = Answering(Address("127.0.0.1", 0))
        async with answering(how, state, None, lambda: idle(0.0)) as server:

            async def ask(target: str) -> Answer:
                reader, writer = await asyncio.open_connection(server.address.host, server.address.port)
                lines = [f"GET /v1/partitions/{target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
                lines.append(f"Authorization: Bearer {make_token(state)}")
                writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
                answer = parsed(await reader.read())
                writer.close()
                return answer

            await main(ask)

    asyncio.run(run())


def limited(patch: pytest.MonkeyPatch, **limits: Any) -> None:
    patch.setattr("lehr.http.server.Limits", lambda: Limits(**limits))


def hanging(patch: pytest.MonkeyPatch, diff: Callable[..., Awaitable[Any]]) -> None:
    """Let files be compared one by one, by `diff`."""
    patch.setattr(FilePlugin, "diff", diff)
    patch.setattr(FilePlugin, "diff_many", AssetPlugin.diff_many)


def test_a_thread_that_hangs_ends_the_dry_run_at_its_limit(
    state: Path, monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    async def diff(self: Any, target: Any, read: Any) -> Any:
        await self._blocking.run(release.wait)

    hanging(monkeypatch, diff)
    limited(monkeypatch, dry_run_seconds=0.3)

    async def main(ask: Ask) -> None:
        for path in ("unblock?asset=f/1", "what-if?asset=f/1&if=retry", "plan?selector=f/1"):
            answer = await ask(f"shop/{path}")
            assert (answer.status, answer.json["code"], answer.json["error"]) == (408, "TooSlow", "HTP144")
        assert len(abandoned()) == 3
        monkeypatch.setattr("lehr.wiring.dry_runs._MOST_ABANDONED", 3)
        answer = await ask("shop/unblock?asset=f/1")
        assert (answer.status, answer.json["code"], answer.json["error"]) == (503, "Unavailable", "WIR111")
        assert "file" in answer.json["detail"]
        release.set()
        while abandoned():
            await SystemClock().sleep(0.01)

    serve(state, main)


def test_a_plugin_that_blocks_its_event_loop_delays_only_other_dry_runs(
    state: Path, monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    async def diff(self: Any, target: Any, read: Any) -> Any:
        release.wait()

    hanging(monkeypatch, diff)
    limited(monkeypatch, dry_run_seconds=0.3, dry_run_wait_seconds=0.3, dry_runs=2)
    monkeypatch.setattr(dry_run_queue, "_GRACE_SECONDS", 0.2)

    async def main(ask: Ask) -> None:
        begun = time.monotonic()
        first, second, third, other = await asyncio.gather(
            ask("shop/unblock?asset=f/1"),
            ask("shop/unblock?asset=f/2"),
            ask("shop/unblock?asset=f/3"),
            ask("shop/assets/f/1"),
        )
        assert time.monotonic() - begun < 20
        assert other.status == 200
        found = sorted((item.status, item.json["error"]) for item in (first, second, third))
        assert found == [(408, "HTP144"), (503, "HTP117"), (503, "HTP145")]
        assert (await ask("shop/unblock?asset=f/1")).json["error"] == "HTP145"
        monkeypatch.undo()
        release.set()
        answer = await ask("shop/unblock?asset=f/1")
        while answer.status == 503:
            answer = await ask("shop/unblock?asset=f/1")
        assert (answer.status, answer.json["now"]["unblocked"]) == (200, True)

    serve(state, main)


def test_a_plan_has_at_most_a_thousand_assets(state: Path) -> None:
    async def main(ask: Ask) -> None:
        answer = await ask("shop/plan?selector=type=lehr.File")
        assert (answer.status, answer.json["error"]) == (400, "DRY107")
        assert answer.json["errors"] == [
            {
                "parameter": "selector",
                "why": "a plan has at most 1,000",
                "fix": "use a narrower selector",
            }
        ]
        answer = await ask("shop/plan?selector=f/1*")
        assert (answer.status, len(answer.json)) == (200, 112)

    serve(state, main)


def test_before_the_first_incarnation_there_is_nothing_to_compare(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.sqlite")
    store.commit([TakeLease(Partition("shop"), "me", 0.0)])
    store.close()
    write_record(tmp_path, tmp_path, "shop")

    async def main(ask: Ask) -> None:
        asked = {
            "unblock?asset=a": "QRY121",
            "what-if?asset=a&if=retry": "QRY121",
            "plan?selector=all": "QRY108",
        }
        for path, error in asked.items():
            answer = await ask(f"shop/{path}")
            assert (answer.status, answer.json["code"], answer.json["error"]) == (404, "NotFound", error)

    serve(tmp_path, main)
