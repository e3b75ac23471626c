"""The page in a real Chromium: accessible, within its policy, live, and also without JavaScript."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.control.http_servers import token_for
from lehr.http.access import new_ticket
from lehr.model.control import ControlKind
from lehr.model.decision import Status, Verdict
from lehr.model.diff import Change, Diff
from lehr.model.reason import Reason
from lehr.page.screens import SCREENS
from tests.installed import installed
from tests.integration.http.test_explanations_over_http import state
from tests.integration.page.test_page import DB, EVIL, WEB, connected, held, id_for, place
from tests.integration.page.test_unblock_page import blocked
from tests.said import address
from tests.unit.query.conftest import Shelf

playwright = pytest.importorskip("playwright.sync_api")

__all__ = ["blocked", "connected", "held", "state"]

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 30_000
"""Milliseconds for what a page should do at once, on a busy machine."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = installed("chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where the state of the test is served: `state`, unless it names another one."""
    folder = request.getfixturevalue(getattr(request, "param", "state"))
    command = [sys.executable, "-m", "lehr", "serve", "--state", str(folder), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield address(process)
        finally:
            process.terminate()
            process.wait(timeout=150)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    """A store that a test goes on to write to while it is served."""
    tmp_path.chmod(0o700)
    shelf = Shelf(tmp_path / "state.sqlite")
    shelf.publish(shelf.asset("a"), shelf.asset("c"))
    shelf.decide("a", Status.CONVERGED, Reason.AS_INTENDED, "production is as intended")
    yield shelf
    shelf.close()


@pytest.fixture
def live(shelf: Shelf, tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def evil(shelf: Shelf, tmp_path: Path) -> Path:
    verdict = Verdict("check", allow=False, reason=Reason.FROZEN, message=EVIL, unblock=EVIL)
    differs = Diff((Change(EVIL, EVIL, EVIL),))
    shelf.decide("c", Status.WAITING, Reason.FROZEN, EVIL, (verdict,), diff=differs)
    return tmp_path


def signed_in(browser: Any, served: str, **options: Any) -> Any:
    """A context of the browser that the server admits."""
    context = browser.new_context(**options)
    ticket = new_ticket(token_for(served), time.time())
    assert context.request.get(f"{served}/sign-in", params={"ticket": ticket}).ok
    return context


class Watched:
    """A page of a browser, and what went wrong on it.

    Attributes:
        troubles: errors of scripts and violations of the content security policy.
    """

    def __init__(self, context: Any) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.troubles: list[str] = []
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", lambda message: self._heard(message))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning") or "Content Security Policy" in message.text:
            self.troubles.append(message.text)


# --- every screen ---------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_screen_violates_accessibility(browser: Any, served: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    found = {}
    context = signed_in(browser, served, bypass_csp=True, color_scheme=scheme)
    watched = Watched(context)
    for screen in SCREENS:
        watched.page.goto(served + place(screen.path, id_for(screen)))
        result = Axe().run(watched.page)
        found[screen.name] = [
            f"{item['id']}: {node['html'][:200]}"
            for item in result.response["violations"]
            for node in item["nodes"]
        ]
    context.close()
    assert found == {screen.name: [] for screen in SCREENS}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("served", ["connected"], indirect=True)
def test_a_graph_of_a_hundred_assets_is_accessible_and_within_its_policy(
    browser: Any, served: str, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    path = f"{served}/p/shop/graph/{WEB}?hops=2"
    context = signed_in(browser, served, bypass_csp=True, color_scheme=scheme)
    watched = Watched(context)
    watched.page.goto(path)
    found = Axe().run(watched.page).response["violations"]
    assert [(item["id"], item["nodes"][0]["html"][:200]) for item in found] == []
    context.close()
    context = signed_in(browser, served)
    watched = Watched(context)
    watched.page.goto(path)
    playwright.expect(watched.page.locator("svg a")).to_have_count(100)
    assert watched.troubles == []
    context.close()


@pytest.mark.parametrize("served", ["connected"], indirect=True)
@pytest.mark.parametrize("script", [True, False])
def test_the_keyboard_leads_from_an_asset_to_its_neighbour(browser: Any, served: str, script: bool) -> None:
    context = signed_in(browser, served, java_script_enabled=script)
    page = context.new_page()
    page.goto(f"{served}/p/shop/assets/{WEB}")
    page.get_by_role("link", name="Neighbourhood", exact=True).press("Enter")
    playwright.expect(page.locator("h1")).to_contain_text("1 asset around")
    neighbour = page.locator("svg").get_by_role("link", name=DB)
    neighbour.focus()
    playwright.expect(neighbour).to_be_focused()
    page.keyboard.press("Enter")
    playwright.expect(page.locator("h1")).to_contain_text(DB)
    context.close()


@pytest.mark.parametrize("served", ["held"], indirect=True)
@pytest.mark.parametrize("script", [True, False])
def test_the_keyboard_leads_through_all_pages_of_controls(browser: Any, served: str, script: bool) -> None:
    context = signed_in(browser, served, java_script_enabled=script)
    watched = Watched(context)
    page = watched.page
    page.goto(f"{served}/p/shop/controls")
    for shown, number in ((100, 0), (100, 100), (50, 200)):
        playwright.expect(page.locator("h1")).to_have_text("250 controls in force")
        playwright.expect(page.locator("tbody tr")).to_have_count(shown)
        playwright.expect(page.locator("tbody tr").first).to_contain_text(f"reason {number} <script>")
        following = page.get_by_role("link", name="Next page")
        if number < 200:
            following.press("Enter")
    playwright.expect(following).to_have_count(0)
    answer = page.goto(f"{served}/p/shop/controls?cursor=<script>alert(1)</script>")
    assert answer.status == 400
    playwright.expect(page.locator("h1")).to_contain_text("not a valid cursor")
    assert [text for text in watched.troubles if "status of 400" not in text] == []
    context.close()


@pytest.mark.parametrize("served", ["blocked"], indirect=True)
@pytest.mark.parametrize("script", [True, False])
def test_a_blocked_asset_leads_to_the_commands_that_unblock_it(
    browser: Any, served: str, script: bool
) -> None:
    context = signed_in(browser, served, java_script_enabled=script)
    watched = Watched(context)
    page = watched.page
    page.goto(f"{served}/p/shop/assets/page")
    page.get_by_role("link", name="What would unblock it?").press("Enter")
    playwright.expect(page.locator("h1")).to_contain_text("What would unblock page")
    playwright.expect(page.locator("li code")).to_have_count(2)
    assert page.url == f"{served}/p/shop/unblock/page"
    assert watched.troubles == []
    context.close()


@pytest.mark.parametrize("served", ["blocked"], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_would_unblock_an_asset_is_accessible_and_compared_once(
    browser: Any, served: str, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = signed_in(browser, served, bypass_csp=True, color_scheme=scheme)
    page = Watched(context).page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for asset in ("page", "other", "broken", "same"):
        page.goto(f"{served}/p/shop/unblock/{asset}")
        found = Axe().run(page).response["violations"]
        assert [(item["id"], item["nodes"][0]["html"][:200]) for item in found] == [], asset
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # on which pages refresh
    page.wait_for_timeout(500)
    assert sum("/unblock/" in url for url in asked) == 4
    assert not [url for url in asked if url.endswith("/events")]
    context.close()


@pytest.mark.parametrize("served", ["state", "evil"], indirect=True)
def test_no_screen_violates_its_policy(browser: Any, served: str) -> None:
    context = signed_in(browser, served)
    watched = Watched(context)
    for screen in SCREENS:
        answer = watched.page.goto(served + place(screen.path, id_for(screen)))
        if answer.status == 404:
            watched.troubles.clear()  # the browser reports the status of a page without this policy
        playwright.expect(watched.page.locator("h1")).to_be_visible()
        assert watched.troubles == [], screen.name
    context.close()


@pytest.mark.parametrize("script", [True, False])
def test_a_link_of_lehr_open_admits_a_browser_that_stays_admitted(
    browser: Any, served: str, script: bool
) -> None:
    def link(*words: str) -> str:
        command = [sys.executable, "-m", "lehr", "open", "--print", "--server", served, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=150).stdout.strip()

    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    page.goto(f"{served}/p/shop")
    playwright.expect(page.locator("h1")).to_contain_text("only to the token")
    used = link("c")
    page.goto(used)
    playwright.expect(page.locator("h1")).to_contain_text("c is waiting", timeout=PATIENCE)
    page.goto(f"{served}/p/shop")
    playwright.expect(page.locator("h1")).to_contain_text("wait for")
    context.close()
    other = browser.new_context().new_page()
    other.goto(used)
    playwright.expect(other.locator("h1")).to_contain_text("no longer works")
    other.context.close()


def test_it_reads_without_javascript(browser: Any, served: str) -> None:
    context = signed_in(browser, served, java_script_enabled=False)
    page = context.new_page()
    page.goto(served)
    playwright.expect(page.locator("h1")).to_contain_text("wait for")
    page.get_by_role("link", name="Assets", exact=True).click()
    page.get_by_label("Filter").fill("id == 'c'")
    page.get_by_role("button", name="Show").click()
    playwright.expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="c", exact=True).click()
    playwright.expect(page.locator("h1")).to_contain_text("c is waiting")
    context.close()


def test_the_keyboard_leads_to_the_search(browser: Any, served: str) -> None:
    context = signed_in(browser, served)
    page = context.new_page()
    page.goto(f"{served}/p/shop/assets")
    page.keyboard.press("/")
    playwright.expect(page.get_by_label("Filter")).to_be_focused()
    context.close()


# --- live ------------------------------------------------------------------------------------


@pytest.mark.parametrize("served", ["live"], indirect=True)
def test_it_shows_what_changes_by_itself_and_keeps_what_is_open(
    browser: Any, served: str, shelf: Shelf
) -> None:
    context = signed_in(browser, served)
    watched = Watched(context)
    page = watched.page
    page.goto(f"{served}/p/shop/assets/a")
    playwright.expect(page.locator("h1")).to_contain_text("a has converged")
    page.get_by_text("Payload and addons").click()
    shelf.decide("a", Status.WAITING, Reason.FROZEN, "frozen by ana: market day")
    shelf.say(ControlKind.FREEZE, "a")
    playwright.expect(page.locator("h1")).to_contain_text("frozen by ana: market day", timeout=PATIENCE)
    playwright.expect(page.locator("pre")).to_be_visible()
    assert watched.troubles == []
    context.close()


ONLY_EVENTS = """
const later = window.setTimeout, Source = window.EventSource;
window.setTimeout = (work, wait) => (wait > 5000 ? 0 : later(work, wait));
window.received = 0;
window.EventSource = class extends Source {
  constructor(path) {
    super(path);
    this.addEventListener("message", () => { window.received += 1; });
  }
};
"""
"""A page that is not refreshed after a time, and counts the events that it receives."""


@pytest.mark.parametrize("served", ["live"], indirect=True)
def test_what_changes_while_it_asks_is_shown_without_another_change(
    browser: Any, served: str, shelf: Shelf
) -> None:
    context = signed_in(browser, served, bypass_csp=True)
    page = Watched(context).page
    page.add_init_script(ONLY_EVENTS)
    page.goto(f"{served}/p/shop/assets/a")
    overtaken: list[str] = []

    def change_once_answered(route: Any) -> None:
        answer = route.fetch()
        if not overtaken and "the first" in answer.text():
            overtaken.append(answer.text())
            before = page.evaluate("window.received")
            shelf.decide("a", Status.WAITING, Reason.FROZEN, "frozen: the second change")
            page.wait_for_function(f"window.received > {before}", timeout=PATIENCE)
        route.fulfill(response=answer)

    page.route("**/p/shop/assets/a", change_once_answered)
    shelf.decide("a", Status.WAITING, Reason.FROZEN, "frozen: the first change")
    playwright.expect(page.locator("h1")).to_contain_text("the second change", timeout=PATIENCE)
    assert len(overtaken) == 1
    assert "the second" not in overtaken[0]
    context.close()


@pytest.mark.parametrize("served", ["live"], indirect=True)
def test_seven_tabs_and_more_are_all_shown_what_changes(browser: Any, served: str, shelf: Shelf) -> None:
    context = signed_in(browser, served)
    tabs = [Watched(context) for _ in range(9)]
    for tab in tabs:
        tab.page.goto(f"{served}/p/shop/assets/a")
        playwright.expect(tab.page.locator("h1")).to_contain_text("a has converged", timeout=PATIENCE)
    shelf.decide("a", Status.WAITING, Reason.FROZEN, "frozen by ana: market day")
    for tab in tabs:
        playwright.expect(tab.page.locator("h1")).to_contain_text("market day", timeout=PATIENCE)
    tabs[0].page.close()  # which followed the feed for all of them
    shelf.decide("a", Status.CONVERGED, Reason.AS_INTENDED, "production is as intended")
    for tab in tabs[1:]:
        playwright.expect(tab.page.locator("h1")).to_contain_text("a has converged", timeout=PATIENCE)
        assert tab.troubles == []
    context.close()


@pytest.mark.parametrize("served", ["live"], indirect=True)
def test_while_the_server_is_away_what_is_known_stays_and_is_marked(
    browser: Any, served: str, request: pytest.FixtureRequest
) -> None:
    context = signed_in(browser, served)
    page = context.new_page()
    page.goto(f"{served}/p/shop/assets/a")
    context.set_offline(True)
    playwright.expect(page.locator("body.stale")).to_be_visible(timeout=PATIENCE)
    playwright.expect(page.locator("h1")).to_contain_text("a has converged")
    context.set_offline(False)
    playwright.expect(page.locator("body.stale")).to_have_count(0, timeout=PATIENCE)
    context.close()
