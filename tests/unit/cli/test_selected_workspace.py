"""Which of the arguments `[DIR] [SELECTOR]` are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from lehr.base.errors import LehrError
from lehr.cli.selected_workspace import location_and_selector


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "intent").mkdir()
    (tmp_path / "motd").touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "location",
    [
        "intent",
        "/srv/intent",
        "../intent",
        "./missing",
        "~/intent",
        "https://example.org/intent.git",
        "git@example.org:team/intent",
        "example.org:intent",
        "git+intent",
        "missing.git",
    ],
)
def test_one_argument_can_be_a_location(location: str) -> None:
    assert location_and_selector(location, None) == (location, None)


@pytest.mark.parametrize(
    "text", ["web/*", "web/nginx.conf", "motd", "type=lehr.File", "label:team=web", "all"]
)
def test_one_argument_can_be_a_selector(text: str) -> None:
    location, selector = location_and_selector(text, None)
    assert location == "."
    assert str(selector).removeprefix("id=") == text


def test_two_arguments_are_a_location_and_a_selector() -> None:
    location, selector = location_and_selector("web/*", "intent")
    assert (location, str(selector)) == ("web/*", "id=intent")


def test_no_argument_is_all_of_the_workspace_here() -> None:
    assert location_and_selector(None, None) == (".", None)


@pytest.mark.parametrize(("location", "selector"), [("", None), (".", ""), ("color=red", None)])
def test_a_selector_that_is_not_valid(location: str, selector: str | None) -> None:
    with pytest.raises(LehrError) as caught:
        location_and_selector(location, selector)
    assert caught.value.code in {"MOD104", "MOD105"}
