"""Scripts are read whole: every problem at once, with its place; and written as they were."""

from __future__ import annotations

import pytest

from lehr.model.decision import Status
from lehr.testing.sim.faults import PushFault
from lehr.testing.sim.script_arguments import seconds_of
from lehr.testing.sim.script_play import read


def problems(text: str) -> list[str]:
    _script, diagnostics = read(text, "x.txt")
    assert all(item.code == "SCN001" and item.fix for item in diagnostics)
    return [f"{item.at}: {item.what}" for item in diagnostics]


def test_every_problem_is_found_with_its_place() -> None:
    text = """\
# A comment.
commmit
    web: value 1
advance soon
fault push web never
freeze
settle 1h 2h
    too much
store sometimes
pin web --until tomorrow
commit
    web: valeu 1, depends on db
    x y z
    launch: lehr.Freeze
        select: {all: true
----
"""
    assert problems(text) == [
        "x.txt:2:1: there is no command `commmit`",
        "x.txt:4:9: `soon` is not a length of time; write 90s, 1h30m or 2d",
        f"x.txt:5:16: `never` is not one of {', '.join(PushFault)}",
        "x.txt:6:7: SELECTOR is missing",
        "x.txt:7:11: `settle` takes nothing more",
        "x.txt:8:5: nothing may be written below `settle`",
        "x.txt:9:7: expected `fail` or `unreadable` or `lag` or `repair`",
        "x.txt:10:9: `pin` has no option `--until`",
        "x.txt:10:25: --at INCARNATION is missing",
        "x.txt:12:10: `valeu 1` cannot be understood",
        "x.txt:13:5: this declares no asset",
        "x.txt:15:27: not valid YAML: did not find expected ',' or '}'",
    ]


def test_a_command_that_is_almost_right_is_named() -> None:
    [diagnostic] = read("advence 5s\n", "x.txt")[1]
    assert diagnostic.fix == "did you mean `advance`?"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("    indented\n", "x.txt:1:5: this is indented, and belongs to no command"),
        ("----\n", "x.txt:1:1: there is no command above `----`"),
        ("commit\n", "x.txt:1:1: `commit` is empty"),
        ("settle\nworld --seed 2\n", "x.txt:2:1: `world` comes too late: the world is there already"),
        ("file ../x\n    y\n", "x.txt:1:6: `../x` leads out of the source"),
        ("clock 1h\n", "x.txt:1:7: `1h` has no sign for forward or back; write +1h or -5m"),
        (
            "world --start 2026-01-10\n",
            "x.txt:1:15: `2026-01-10` has no time zone; write 2026-01-10Z for UTC",
        ),
        ("expect web Fine\n", f"x.txt:1:12: `Fine` is not one of {', '.join(Status)}"),
    ],
)
def test_what_makes_no_sense_is_said(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_a_script_is_written_as_it_was_read() -> None:
    text = """\
# What it shows.

commit
    # In the middle.
    web: value 1

settle
----
0:00:00.0  test@1 is published: web

# Next.
settle
----

production
----
web = 1
# That was it.
"""
    script, diagnostics = read(text, "x.txt")
    assert not diagnostics
    assert script.rewritten(script.expected) == text
    assert [len(block.steps) for block in script.blocks] == [2, 1, 1]
    assert script.expected == [["0:00:00.0  test@1 is published: web"], [], ["web = 1", "# That was it."]]


def test_commands_without_a_mark_get_one() -> None:
    script, _ = read("settle\n", "x.txt")
    assert script.rewritten([["done"]]) == "settle\n----\ndone\n"
    assert script.difference([["done"]]) == ["--- x.txt", "+++ x.txt as played", "@@ -1,2 +1,3 @@", " settle",
                                             " ----", "+done"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("1h30m", 5400.0), ("2d", 172_800.0), ("0.5s", 0.5)]
)
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
