"""The page in Chromium: every screen is shown whole, and the browser has nothing to complain about.

A text that breaks out of its place, a style in a template or a script that fails is a message of the console.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from lehr.http.server import Address
from lehr.page.screens import SCREENS
from lehr.query.run_state import idle
from lehr.wiring.program import answering
from tests.integration.http.test_explanations_over_http import state
from tests.integration.page.test_page import place

__all__ = ["state"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-logging=stderr",
    "--dump-dom",
)
ABOUT_ROLLOUTS = ("rollout", "canary", "forecast")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; install Debian's package")


async def shown(url: str, profile: Path) -> tuple[str, list[str]]:
    """The document of a page as Chromium has it, and what its console has."""
    assert CHROMIUM is not None
    program = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *OPTIONS,
        f"--user-data-dir={profile}",
        url,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, log = await asyncio.wait_for(program.communicate(), 60)
    except BaseException:
        program.kill()
        raise
    return output.decode(), [line for line in log.decode().splitlines() if ":CONSOLE" in line]


@pytest.mark.timeout(300)
def test_every_screen_is_shown_without_a_complaint(state: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with answering(Address("127.0.0.1", 0), state, None, lambda: idle(0.0), ()) as server:
            for screen in SCREENS:
                path = place(screen.path, "waves" if screen.name in ABOUT_ROLLOUTS else "c")
                document, messages = await shown(f"{server.url}{path}", tmp_path / "profile")
                assert messages == [], screen.name
                assert "<h1>" in document, screen.name
                assert document.rstrip().endswith("</html>")

    asyncio.run(main())


def test_a_style_in_a_page_is_a_message(tmp_path: Path) -> None:
    """Otherwise, the test above could not fail."""
    page = tmp_path / "page.html"
    rule = '<meta http-equiv="content-security-policy" content="default-src \'none\'">'
    page.write_text(f'{rule}<h1 style="color: red">red</h1>')
    _document, messages = asyncio.run(shown(page.as_uri(), tmp_path / "profile"))
    assert "Content Security Policy" in messages[0]
