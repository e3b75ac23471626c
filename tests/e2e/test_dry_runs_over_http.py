"""Dry runs next to a real `lehr run --listen`: as on its machine, and without effects."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from lehr.base.errors import LehrError
from lehr.cli.main import cli
from lehr.control.http_servers import token_for
from tests.said import address

LEHR = (sys.executable, "-m", "lehr")
ASSETS = """\
id: page
type: lehr.File
payload: {path: out/page, content: "new\\n"}
---
id: same
type: lehr.File
payload: {path: out/same, content: "same\\n"}
---
id: hours
type: lehr.Calendar
payload:
  select: {ids: [same]}
  timezone: UTC
  closed: [{from: "2020-01-01T00:00", to: "2020-01-02T00:00", reason: stocktaking}]
  override: true
"""
UNFREEZE = "lehr unfreeze id=page"


class Shop(NamedTuple):
    """A workspace whose `page` is frozen, and differs, and the servers of its state.

    Attributes:
        run: of `lehr run --listen`.
        serve: of `lehr serve` next to it.
    """

    folder: Path
    run: str
    serve: str


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "assets").mkdir()
    (folder / "out").mkdir()
    (folder / "lehr.yaml").write_text("partition: shop\n")
    (folder / "assets/all.yaml").write_text(ASSETS)
    with contextlib.ExitStack() as started:
        run = started.enter_context(program(folder, "run"))
        lehr(folder, "wait", "page")
        lehr(folder, "freeze", "page", "--reason", "market day")
        (folder / "out/page").write_text("changed by hand\n")
        lehr(folder, "wait", "page", "--for", "status=Waiting")
        serve = started.enter_context(program(folder, "serve"))
        yield Shop(folder, run, serve)


@contextlib.contextmanager
def program(folder: Path, name: str) -> Iterator[str]:
    """A program that answers over HTTP, by its URL."""
    command = [*LEHR, name, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield address(process)
        finally:
            process.terminate()
            process.wait(timeout=30)


def lehr(folder: Path, *arguments: str) -> str:
    """The output of a command."""
    done = subprocess.run(
        [*LEHR, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(url: str, path: str, **query: Any) -> tuple[int, Any]:
    """Status and document."""
    headers = {"Authorization": f"Bearer {token_for(url)}"}
    place = f"{url}/v1/partitions/shop/{path}?{urllib.parse.urlencode(query, doseq=True)}"
    try:
        with urllib.request.urlopen(urllib.request.Request(place, headers=headers), timeout=50) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture(params=["run", "serve"])
def url(request: pytest.FixtureRequest, shop: Shop) -> str:
    """Each of the two servers."""
    found: str = getattr(shop, request.param)
    return found


# --- what is answered ---------------------------------------------------------------------


def test_an_unfreeze_would_have_the_asset_pushed(url: str) -> None:
    status, found = ask(url, "what-if", asset="page", **{"if": "unfreeze"})
    assert (status, found["unblocked"], found["commands"]) == (200, True, [UNFREEZE])
    assert found["planned"]["result"] == "will be pushed"
    assert [change["path"] for change in found["planned"]["diff"]["changes"]] == ["content"]


def test_several_commands_can_be_supposed(url: str) -> None:
    commands = ["unfreeze 'id=page'", "retry"]
    status, found = ask(url, "what-if", asset="page", **{"if": commands})
    assert (status, found["commands"]) == (200, [UNFREEZE, "lehr retry page"])


def test_the_freeze_is_found_to_block_it(url: str) -> None:
    status, found = ask(url, "unblock", asset="page")
    assert status == 200
    assert (found["now"]["unblocked"], found["now"]["planned"]["reason"]) == (False, "Frozen")
    assert (found["then"]["commands"], found["complete"]) == ([UNFREEZE], True)


def test_the_next_turns_of_a_selection_are_planned(url: str) -> None:
    status, found = ask(url, "plan", selector="type=lehr.File")
    assert status == 200
    assert [(item["id"], item["result"]) for item in found] == [("page", "waits"), ("same", "as intended")]
    assert ask(url, "plan", selector="type=test.Nothing") == (200, [])


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
@pytest.mark.parametrize("question", [("--if", "unfreeze", "--if", "retry"), ("--unblock",)])
def test_the_command_prints_the_same_as_on_the_machine(
    shop: Shop, question: tuple[str, ...], form: str
) -> None:
    asked = ("why", "page", *question, "-o", form)
    here = lehr(shop.folder, *asked)
    assert "unfreeze" in here
    for url in (shop.run, shop.serve):
        assert lehr(shop.folder, *asked, "--server", url) == here


def test_nothing_is_written_or_pushed(shop: Shop, url: str) -> None:
    def written() -> list[Any]:
        names = ("decisions", "feed", "operations", "ledger", "controls", "standings")
        return [ask(url, name) for name in names]

    before = written()
    ask(url, "what-if", asset="page", **{"if": "unfreeze"})
    ask(url, "unblock", asset="page")
    ask(url, "plan", selector="all")
    assert written() == before
    assert (shop.folder / "out/page").read_text() == "changed by hand\n"


# --- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "query", "status", "error"),
    [
        ("what-if", {"asset": "nothing", "if": "retry"}, 404, "QRY121"),
        ("what-if", {"asset": "../../etc/passwd", "if": "retry"}, 404, "QRY121"),
        ("what-if", {"asset": "page", "if": "freeze all"}, 400, "DRY101"),
        ("what-if", {"asset": "page", "if": "unfreeze 'id=page"}, 400, "DRY101"),
        ("what-if", {"asset": "page", "if": ["unfreeze", "retry same"]}, 400, "DRY102"),
        ("what-if", {"asset": "page", "if": "unpin"}, 400, "DRY103"),
        ("what-if", {"asset": "page", "if": "rollout promote"}, 400, "CTL141"),
        ("what-if", {"asset": "page", "if": "override hours"}, 200, ""),
        ("what-if", {"asset": "hours", "if": "retry"}, 400, "DRY104"),
        ("what-if", {"asset": "page"}, 400, "HTP103"),
        ("what-if", {"asset": "page", "if": ""}, 400, "HTP103"),
        ("what-if", {"asset": "page", "if": ["retry"] * 21}, 400, "HTP103"),
        ("what-if", {"asset": ["page", "same"], "if": "retry"}, 400, "HTP103"),
        ("unblock", {"asset": "nothing"}, 404, "QRY121"),
        ("unblock", {"asset": "/"}, 404, "QRY121"),
        ("unblock", {"asset": "hours"}, 400, "DRY104"),
        ("unblock", {}, 400, "HTP103"),
        ("plan", {"selector": ""}, 400, "HTP103"),
        ("plan", {"selector": "a,,b"}, 400, "MOD104"),
        ("plan", {}, 400, "HTP103"),
    ],
)
def test_what_cannot_be_asked_is_a_problem(
    shop: Shop, path: str, query: dict[str, Any], status: int, error: str
) -> None:
    found, answer = ask(shop.run, path, **query)
    assert (found, answer.get("error", "")) == (status, error), answer


@pytest.mark.parametrize(
    "question",
    [
        ("nothing", "--unblock"),
        ("hours", "--unblock"),
        ("page", "--if", "freeze all"),
        ("page", "--if", "retry same"),
        ("page", "--if", "unpin"),
        ("page", "--if", "rollout release"),
        ("page", "--if", "override nothing"),
    ],
)
def test_errors_are_the_same_as_on_the_machine(
    shop: Shop, question: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.folder)
    here = CliRunner().invoke(cli, ["why", *question]).exception
    assert isinstance(here, LehrError)
    for url in (shop.run, shop.serve):
        there = CliRunner().invoke(cli, ["--server", url, "why", *question]).exception
        assert isinstance(there, LehrError)
        assert (there.code, str(there)) == (here.code, str(here))


def test_a_server_does_not_start_with_metric_sources_that_it_cannot_read(shop: Shop) -> None:
    command = [*LEHR, "serve", "--listen", "127.0.0.1:0", "--metrics", "none.yaml"]
    done = subprocess.run(command, cwd=shop.folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "WIR105" in done.stderr


def test_metric_sources_are_those_of_the_server(shop: Shop) -> None:
    asked = ["why", "page", "--unblock", "--server", shop.run, "--metrics", "metrics.yaml"]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 2
    assert "--metrics and --server" in done.output
