"""`lehr open` shows the page of a state in a browser, and finds the server on its own."""

from __future__ import annotations

import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner, Result

from lehr.base.errors import LehrError
from lehr.cli.main import cli
from lehr.control.http_servers import token_of
from lehr.control.state_folder import default_state
from lehr.http.access import Access
from tests.said import address

LEHR = (sys.executable, "-m", "lehr")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("shop")
    (folder / "assets").mkdir()
    (folder / "lehr.yaml").write_text("partition: shop\n")
    (folder / "assets/all.yaml").write_text(
        "- {id: web/a, type: lehr.File, payload: {path: a, content: a}}\n"
    )
    subprocess.run([*LEHR, "run", "--once"], cwd=folder, check=True, capture_output=True, timeout=150)
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    command = [*LEHR, "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        yield address(process)
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def open_(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["open", *arguments])


def test_the_link_admits_to_the_server_of_the_state(url: str, folder: Path) -> None:
    done = open_("--print")
    assert done.exit_code == 0, done.output
    link = urlsplit(done.stdout.strip())
    assert f"{link.scheme}://{link.netloc}" == url
    given = parse_qs(link.query)
    assert given["to"] == ["/"]
    access = Access(token_of(default_state(folder)))
    until = float(given["ticket"][0].partition(".")[0])
    assert access.set_cookie(given["ticket"][0], until - 1.0) is not None


def test_it_leads_to_an_asset(url: str) -> None:
    found = parse_qs(urlsplit(open_("--print", "web/a").stdout.strip()).query)
    assert found["to"] == ["/p/shop/assets/web/a"]


def test_an_asset_that_does_not_exist_is_an_error(url: str) -> None:
    error = open_("--print", "web/b").exception
    assert isinstance(error, LehrError)
    assert "web/b" in error.what


def test_a_browser_is_opened(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def browser(link: str) -> bool:
        opened.append(link)
        return True

    monkeypatch.setattr(webbrowser, "open", browser)
    done = open_()
    assert done.stderr == f"opened {url} in a browser\n"
    assert done.stdout == ""
    assert opened[0].startswith(f"{url}/sign-in?")


def test_without_a_browser_the_link_is_printed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _link: False)
    done = open_()
    assert "no browser" in done.stderr
    assert done.stdout.startswith(f"{url}/sign-in?")


def test_another_state_has_no_server(tmp_path: Path, url: str) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    error = open_("--print", "--state", str(state)).exception
    assert isinstance(error, LehrError)
    assert error.code == "CLI190"
    assert "lehr serve" in error.fix


def test_a_server_elsewhere_is_asked_before_anything_is_opened(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    def fail(_link: str) -> bool:
        raise AssertionError

    monkeypatch.setattr(webbrowser, "open", fail)
    error = open_("--server", "http://127.0.0.1:1").exception
    assert isinstance(error, LehrError)
    assert error.code == "HTP107"
    monkeypatch.setenv("LEHR_TOKEN", "other")
    refused = open_("--server", url).exception
    assert isinstance(refused, LehrError)
    assert refused.code == "HTP138"


def test_the_token_is_printed_for_programs(folder: Path, url: str) -> None:
    done = CliRunner().invoke(cli, ["state", "token"])
    assert done.stdout == f"{token_of(default_state(folder))}\n"
