"""The page over HTTP, without a browser: every screen answers, and nothing that it shows can do anything."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lehr.base.digest import Digest
from lehr.http.server import Address
from lehr.model.asset import AssetId
from lehr.model.control import AuditEntry, Control, ControlKind
from lehr.model.decision import Status, Verdict
from lehr.model.diff import Change, Diff
from lehr.model.incarnation import Candidate, SourceRevision
from lehr.model.operation import PushStep, Result
from lehr.model.reason import Reason
from lehr.model.selector import parse_selector
from lehr.model.types import Mention
from lehr.model.writes import Audit, LiftControl, Publish, SetControl
from lehr.page.routes import static_paths
from lehr.page.screens import SCREENS
from lehr.query.list_cursor import list_cursor
from lehr.query.run_state import idle
from lehr.store.sqlite import SqliteStore
from lehr.wiring.program import Answering, answering
from tests.integration.http.served import Answer, parsed
from tests.integration.http.test_explanations_over_http import PUSH, state
from tests.unit.query.conftest import PARTITION, Shelf

__all__ = ["state"]

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 8191 * 8191 }}\x07\u202e" + "long " * 4000
PATHS = {"{id}": "c"}
MOST_BYTES = 60_000
MOST_SCRIPT_BYTES = 20_000
GZIP = ("Accept-Encoding: gzip",)
UNPUBLISHED = ("/p/shop/assets/x/", "/p/shop/assets/y/")
"""Decided about in the state of these tests, and never in intent."""


def ask(folder: Path, *targets: str, headers: Sequence[str] = ()) -> list[Answer]:
    async def one(port: int, target: str) -> Answer:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        lines = [f"GET {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *headers]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = parsed(await reader.read())
        writer.close()
        return answer

    async def main() -> list[Answer]:
        async with answering(
            Answering(Address("127.0.0.1", 0), public_read=True), folder, None, lambda: idle(0.0)
        ) as server:
            return [await one(server.address.port, target) for target in targets]

    return asyncio.run(main())


class Shape(HTMLParser):
    """The parts of a page.

    Attributes:
        scripts: their addresses; an empty one for a script in the page.
        handlers: attributes that run something or name a style.
        text: without markup.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self.images = 0
        self.links: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "script":
            self.scripts.append(given.get("src", ""))
        self.images += tag == "img"
        self.handlers += [name for name in given if name.startswith("on") or name in ("style", "srcdoc")]
        if "href" in given and tag == "a":
            self.links.append(given["href"])

    def handle_data(self, data: str) -> None:
        self.text += data


def place(path: str, id: str = "c") -> str:
    return "/p/shop" + path.replace("{id}", quote(id, safe="/"))


def id_for(screen: Any) -> str:
    """The id of something that the screen can show: a rollout policy, or an asset."""
    return {"rollouts": "waves", "pushes": PUSH}.get(screen.under, "c")


def shape(answer: Answer) -> Shape:
    found = Shape(answer.content.decode())
    assert found.scripts == [static_paths()["lehr.js"]]
    assert found.handlers == []
    assert found.images == 0
    return found


# --- every screen -------------------------------------------------------------------------


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_every_screen_answers_under_a_strict_policy(screen: Any, state: Path) -> None:
    [answer] = ask(state, place(screen.path, id_for(screen)))
    assert answer.status == (401 if screen.still else 200)  # dry runs need the token
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert len(answer.content) < MOST_BYTES
    assert "<h1>" in answer.content.decode()
    shape(answer)


def test_each_link_of_the_first_screens_leads_somewhere(state: Path) -> None:
    starts = [place(screen.path) for screen in SCREENS if screen.title]
    found_links = {link for answer in ask(state, *starts) for link in shape(answer).links}
    links = {link for link in found_links if link.startswith("/p/") and link[:-1] not in UNPUBLISHED}
    assert len(links) > 10
    found = dict(zip(links, ask(state, *links), strict=True))
    assert {link: answer.status for link, answer in found.items() if answer.status != 200} == {}


def test_the_overview_counts_each_asset_under_one_cause(state: Path) -> None:
    [overview, causes] = ask(state, "/p/shop", "/p/shop/causes")
    for answer in (overview, causes):
        text = " ".join(shape(answer).text.split())
        assert re.search(r"\d assets wait for \d things", text)
        assert "frozen by ana: market day" in text


def test_the_status_of_an_asset_is_told_with_its_checks_and_chain(state: Path) -> None:
    [answer] = ask(state, "/p/shop/assets/c")
    text = " ".join(shape(answer).text.split())
    assert "c is waiting: depends-on: b differs" in text or "c is waiting: b differs" in text
    assert "wait until b converges" in text


def test_an_asset_names_who_else_waits_for_its_cause(state: Path) -> None:
    [waiting, cause, settled, none] = ask(
        state, "/p/shop/assets/c", "/p/shop/causes?of=c", "/p/shop/assets/waves", "/p/shop/causes?of=waves"
    )
    found = shape(waiting)
    assert "1 other asset waits for the same cause: newer content is not released" in words(found)
    assert "/p/shop/causes?of=c" in found.links
    assert "2 assets wait for the same thing as c" in words(shape(cause))
    assert shape(cause).links.count("/p/shop/assets/b") == 1
    assert "Who else waits" not in words(shape(settled))
    assert "waves does not wait" in words(shape(none))


def words(found: Shape) -> str:
    return " ".join(found.text.split())


def test_of_many_that_wait_some_are_named_and_all_are_counted(full: Path) -> None:
    first = next(link for link in shape(*ask(full, "/p/shop/assets")).links if "/assets/service-" in link)
    id = first.removeprefix("/p/shop/assets/")
    [asset, cause] = ask(full, first, f"/p/shop/causes?of={id}")
    assert "149 other assets wait for the same cause" in words(shape(asset))
    assert "and 141 more" in words(shape(asset))
    assert "150 assets wait for the same thing" in words(shape(cause))
    assert len({link for link in shape(cause).links if "/assets/service-" in link}) == 150


def test_an_asset_that_waits_alone_is_the_only_one_of_its_cause(evil: Path) -> None:
    [asset] = ask(evil, "/p/shop/assets/a")
    assert "No other asset waits for the same cause" in words(shape(asset))


def test_with_one_partition_the_start_leads_to_it(state: Path) -> None:
    [answer] = ask(state, "/")
    assert (answer.status, answer.headers["location"]) == (303, "/p/shop")


def test_files_are_kept_for_ever_under_the_name_of_their_content(state: Path) -> None:
    answers = ask(state, *static_paths().values())
    for answer in answers:
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]
    script = answers[list(static_paths()).index("lehr.js")]
    assert script.headers["content-type"].startswith("text/javascript")
    assert len(script.content) < MOST_SCRIPT_BYTES


def test_the_guide_lists_every_screen_and_its_parameters() -> None:
    guide = (Path(__file__).resolve().parents[3] / "docs/how-to/look-around.md").read_text()
    cells = [row.split("|")[1] for row in guide.splitlines() if row.startswith(("| `/", "| (itself)"))]
    told = {
        ("" if path == "(itself)" else path.replace("ID", "{id}"), frozenset(re.findall(r"(\w+)=", query)))
        for cell in cells
        for path, query in re.findall(r"(\(itself\)|/[\w/]+)\??([^`]*)", cell)
    }
    assert told == {(screen.path, screen.query) for screen in SCREENS}


def test_the_list_of_assets_shows_a_full_page_with_the_status_of_each(full: Path) -> None:
    [answer] = ask(full, "/p/shop/assets")
    assert answer.status == 200
    assert shape(answer).text.count("Waiting") == 100


# --- neighbourhoods -----------------------------------------------------------------------


@pytest.fixture
def connected(tmp_path: Path) -> Path:
    """shop/web depends on db; 150 others refer to db; all have long ids."""
    tmp_path.chmod(0o700)
    shelf = Shelf(tmp_path / "state.sqlite")
    others = [f"other-{number:03}/{noise(number, 32)}" for number in range(150)]
    targets = {WEB: [DB], **{id: [DB] for id in others}}
    assets = [shelf.asset(DB), *(shelf.asset(id, DependsOn={"assets": on}) for id, on in targets.items())]
    candidate = Candidate(
        PARTITION, 0, (SourceRevision("git:/intent#main", "c0ffee"),), Digest("g"), tuple(assets), ()
    )
    mentions: dict[AssetId, tuple[Mention, ...]] = {
        AssetId(id): (Mention("/addons/lehr.DependsOn/assets/0", AssetId(DB), ()),) for id in targets
    }
    shelf.store.commit([Publish(candidate, mentions, (), shelf.tick())])
    shelf.decide(WEB, Status.WAITING, Reason.DEPENDENCY_DIFFERS, f"{DB} differs")
    shelf.close()
    return tmp_path


WEB, DB = "shop/web/" + "w" * 60, "shop/database/" + "d" * 60


def test_a_neighbourhood_is_a_picture_of_links_and_a_table(connected: Path) -> None:
    [asset, near] = ask(connected, f"/p/shop/assets/{WEB}", f"/p/shop/graph/{WEB}")
    assert f"/p/shop/graph/{WEB}" in shape(asset).links
    found = shape(near)
    assert found.links.count(f"/p/shop/assets/{DB}") == 2
    assert f"/p/shop/graph/{DB}?hops=1" in found.links
    text = " ".join(found.text.split())
    assert "1 asset around" in text
    assert f"{WEB} depends on {DB} (/addons/lehr.DependsOn/assets/0" in text
    assert "▲ Waiting" in text
    assert "shop/datab…" in text


def test_a_neighbourhood_of_many_is_cut_and_small_once_compressed(connected: Path) -> None:
    target = f"/p/shop/graph/{WEB}?hops=2"
    [plain, packed] = [*ask(connected, target), *ask(connected, target, headers=GZIP)]
    assert "only the nearest 100 are shown" in shape(plain).text
    assert len(packed.content) < MOST_BYTES


# --- sizes --------------------------------------------------------------------------------


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """Lists have more items than a page shows, with texts that compress badly."""
    tmp_path.chmod(0o700)
    shelf = Shelf(tmp_path / "state.sqlite")
    ids = [f"service-{number:03}/{noise(number, 32)}" for number in range(150)]
    shelf.publish(*(shelf.asset(id) for id in ids))
    for number, id in enumerate(ids):
        message = noise(number, 120)
        verdict = Verdict("check", allow=False, reason=Reason.FROZEN, message=message, unblock=message)
        shelf.decide(id, Status.WAITING, Reason.FROZEN, message, (verdict,))
        given = AuditEntry(at=shelf.tick(), actor="ana", command="pause", arguments={}, result=message)
        shelf.store.commit([Audit(PARTITION, given), SetControl(freeze(shelf, f"f{number}", message))])
    shelf.close()
    return tmp_path


def freeze(shelf: Shelf, id: str, reason: str, actor: str = "ana", selector: str = "id=a") -> Control:
    return Control(
        id=id,
        kind=ControlKind.FREEZE,
        partition=PARTITION,
        selector=parse_selector(selector),
        reason=reason,
        actor=actor,
        at=shelf.tick(),
    )


def noise(number: int, length: int) -> str:
    """A text of hexadecimal digits, another one for each number."""
    return hashlib.shake_128(str(number).encode()).hexdigest(length // 2)


@pytest.mark.parametrize("path", ["", "/causes", "/assets", "/audit", "/history", "/controls"])
def test_a_full_page_is_small_once_compressed(path: str, full: Path) -> None:
    [plain, packed] = [*ask(full, f"/p/shop{path}"), *ask(full, f"/p/shop{path}", headers=GZIP)]
    assert plain.status == packed.status == 200
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.content) < MOST_BYTES
    assert without_times(gzip.decompress(packed.content)) == without_times(plain.content)


def without_times(page: bytes) -> bytes:
    return re.sub(rb"as of [^<]*|<time.*?</time>", b"", page)


def test_only_browsers_that_ask_for_it_get_compressed_content(state: Path) -> None:
    targets = ("/p/shop", static_paths()["lehr.css"], "/p/shop/assets/c")
    for plain, packed in zip(ask(state, *targets), ask(state, *targets, headers=GZIP), strict=True):
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert plain.headers["vary"] == packed.headers["vary"] == "accept-encoding"
        assert len(packed.content) < len(plain.content)


# --- what is asked wrongly -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/p/shop/assets/no/such", 404, "has no asset no/such"),
        ("/p/other", 404, "no partition"),
        ("/p/shop/nothing/here", 404, "there is no page"),
        ("/p/shop/assets?color=red", 400, "unknown parameter color"),
        ("/p/shop/assets?filter=%5B", 400, "cannot be parsed"),
        ("/p/shop/assets?cursor=x", 400, "cursor"),
        ("/p/shop/controls?cursor=x", 400, "not a valid cursor"),
        ("/p/shop/controls?cursor=%00", 400, "it contains a NUL character"),
        (
            f"/p/shop/controls?cursor={list_cursor('audit', PARTITION, 1)}",
            400,
            "cursor belongs to another list",
        ),
        ("/p/shop/controls?limit=1", 400, "unknown parameter limit"),
        ("/p/shop/assets/c?at=soon", 400, "not a valid time"),
        ("/p/shop/compare?from=77", 404, "there is no incarnation shop@77"),
        ("/p/shop/diff/none", 404, "has no asset none"),
        ("/p/shop/diff/c?at=1", 400, "unknown parameter at"),
        ("/p/shop/graph/none", 404, "has no asset none"),
        ("/p/shop/graph/c?hops=6", 400, "hops"),
        ("/p/shop/graph/c?hops=many", 400, "hops"),
        ("/p/shop/causes?of=none", 404, "has no asset none"),
        ("/p/shop/rollouts/none", 404, "there is no rollout policy none"),
    ],
)
def test_an_error_is_a_page_with_its_status(path: str, status: int, words: str, state: Path) -> None:
    [answer] = ask(state, path)
    assert answer.status == status
    text = " ".join(shape(answer).text.split())
    assert words in text
    assert "Code" in text


def test_before_anything_is_published_each_screen_says_so_or_is_empty(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    SqliteStore(tmp_path / "state.sqlite").close()
    [start] = ask(tmp_path, "/")
    assert start.status == 200
    assert "Nothing is published yet" in shape(start).text


# --- texts of anybody -----------------------------------------------------------------------


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """Whatever people, production and plugins can set is markup, invisible or long."""
    tmp_path.chmod(0o700)
    shelf = Shelf(tmp_path / "state.sqlite")
    shelf.publish(shelf.asset("a", EVIL, Labels={"labels": {"x": "y"}}), shelf.asset("b/../c", EVIL))
    shelf.publish(shelf.asset("a", EVIL + "2"), shelf.asset("b/../c", "short"))
    verdict = Verdict("check", allow=False, reason=Reason.FROZEN, message=EVIL, unblock=EVIL)
    shelf.decide("a", Status.WAITING, Reason.FROZEN, EVIL, (verdict,), diff=Diff((Change(EVIL, EVIL, EVIL),)))
    frozen = freeze(shelf, "f", EVIL, EVIL, "a")
    given = AuditEntry(at=shelf.tick(), actor=EVIL, command=EVIL, arguments={}, result=EVIL)
    shelf.store.commit([SetControl(frozen), Audit(PARTITION, given)])
    shelf.push("a", 1, 1, Result.FAILED, EVIL, (PushStep(shelf.now, EVIL),))
    shelf.close()
    return tmp_path


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_no_text_can_do_anything(screen: Any, evil: Path) -> None:
    [answer] = ask(evil, place(screen.path, "a"))
    assert answer.status in (200, 401, 404)
    shape(answer)
    page = answer.content.decode()
    assert "\x07" not in page
    assert "\u202e" not in page
    assert "67092481" not in page
    assert len(page) < 2 * MOST_BYTES


def test_the_overview_counts_assets_by_status(state: Path) -> None:
    [answer] = ask(state, "/p/shop")
    text = words(shape(answer))
    for expected in ("4 ▲ Waiting DependencyDiffers", "1 ▲ Waiting Frozen", "1 ▲ Converged AwaitingRelease"):
        assert expected in text, text


def test_an_asset_that_waits_for_a_release_looks_the_same_in_the_list_as_on_the_overview(state: Path) -> None:
    [answer] = ask(state, "/p/shop/assets")
    assert "▲ Converged AwaitingRelease" in words(shape(answer))
    assert "AsIntended" not in words(shape(answer))


def test_a_headline_does_not_repeat_the_name_of_the_check(state: Path) -> None:
    [answer] = ask(state, "/p/shop/assets/c")
    title = answer.content.decode().partition("<h1>")[2].partition("</h1>")[0]
    [check] = re.findall(r'▲ waits</span> <span class="id">([^<]+)</span>', answer.content.decode())
    assert "c is waiting: " in title
    assert check not in title


def test_a_value_that_was_not_there_before_is_blank_and_not_null(evil: Path) -> None:
    [answer] = ask(evil, "/p/shop/compare?from=1&to=2")
    assert answer.status == 200
    assert "null" not in shape(answer).text


def test_a_long_history_is_shown_page_by_page(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    shelf = Shelf(tmp_path / "state.sqlite")
    for number in range(150):
        shelf.publish(shelf.asset("a", str(number)))
    shelf.close()
    [first, second] = ask(tmp_path, "/p/shop/history", "/p/shop/history?before=51")
    assert "/p/shop/history?before=51" in shape(first).links
    assert "shop@150" in shape(first).text
    assert "shop@50" not in shape(first).text
    assert "shop@50" in shape(second).text
    assert "shop@51" not in shape(second).text
    assert not any("before=" in link for link in shape(second).links)


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """250 freezes, whose reasons and actors are markup, invisible or long."""
    tmp_path.chmod(0o700)
    shelf = Shelf(tmp_path / "state.sqlite")
    shelf.publish(shelf.asset("a"))
    for number in range(250):
        shelf.store.commit([SetControl(freeze(shelf, f"f{number}", f"reason {number} {EVIL}", EVIL))])
    shelf.close()
    return tmp_path


def test_many_controls_are_shown_page_by_page(held: Path) -> None:
    found: list[str] = []
    link, pages = "/p/shop/controls", 0
    while link:
        [answer] = ask(held, link)
        assert answer.status == 200
        shown = shape(answer)
        assert "250 controls in force" in shown.text
        found += re.findall(r"reason (\d+)", shown.text)
        link, pages = next((link for link in shown.links if "cursor=" in link), ""), pages + 1
    assert found == [str(number) for number in range(250)]
    assert pages == 3


def test_a_page_of_controls_that_were_lifted_since_says_so(held: Path) -> None:
    [first] = ask(held, "/p/shop/controls")
    last = next(link for link in shape(first).links if "cursor=" in link)
    store = SqliteStore(held / "state.sqlite")
    store.commit([LiftControl(PARTITION, f"f{number}", 9_999_999_999.0) for number in range(50, 250)])
    store.close()
    [answer] = ask(held, last)
    assert "50 controls in force" in shape(answer).text
    assert "None on this page." in shape(answer).text
    assert not [link for link in shape(answer).links if "cursor=" in link]


def test_no_step_of_a_push_can_do_anything(evil: Path) -> None:
    [answer] = ask(evil, "/p/shop/pushes/op0001")
    assert answer.status == 200
    shape(answer)
    page = answer.content.decode()
    assert "What the plugin reported" in page
    assert "\u202e" not in page
    assert "67092481" not in page


def test_a_push_is_shown_with_its_steps(state: Path) -> None:
    [answer] = ask(state, f"/p/shop/pushes/{PUSH}")
    text = shape(answer).text
    for expected in ("failed", "the connection broke", "500ms", "adding", "1s", "draining"):
        assert expected in text


def test_what_is_shown_of_a_long_text_says_how_long_it_is(evil: Path) -> None:
    [answer] = ask(evil, "/p/shop/assets/a")
    text = shape(answer).text
    assert "<script>alert(1)</script>" in text
    assert f"({len(EVIL):,} characters)" in text
    assert "\\u{202e}" in text
