"""The table that the demo shows on a terminal."""

from __future__ import annotations

from rich.console import Console

from lehr.demo.play import table
from lehr.model.asset import AssetId
from lehr.query.asset_rows import Row


def row(id: str, status: str = "Converged", reason: str = "", message: str = "") -> Row:
    return Row(AssetId(id), "sample.Service", status, reason, message)


def shown(rows: list[Row], height: int, traffic: str = "") -> list[str]:
    console = Console(width=100, height=height, color_system=None)
    with console.capture() as capture:
        console.print(table(rows, traffic, height))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_what_waits_stands_first_with_what_blocks_it() -> None:
    lines = shown([row("a"), row("b", "Waiting", "CapacityOrder", "c must grow first")], 40)
    assert lines[1].split(maxsplit=2) == ["b", "Waiting", "CapacityOrder: c must grow first"]
    assert lines[2].split() == ["a", "Converged"]


def test_a_reason_that_says_what_the_status_says_is_not_said_twice() -> None:
    lines = shown([row("a", "Pushing", "Pushing", "push 1 is under way")], 40)
    assert lines[1].split(maxsplit=2) == ["a", "Pushing", "push 1 is under way"]


def test_a_small_terminal_shows_what_waits_and_counts_the_rest() -> None:
    rows = [*(row(f"a{number}") for number in range(20)), row("z", "Waiting", "Frozen", "by ana")]
    lines = shown(rows, 13)
    assert lines[1].startswith("z")
    assert lines[-1] == "and 18 more"


def test_the_traffic_stands_below() -> None:
    assert shown([row("a")], 40, "answered  eu v1: 7")[-1] == "answered  eu v1: 7"
