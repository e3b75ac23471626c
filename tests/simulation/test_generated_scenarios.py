"""Scenarios that hypothesis makes up: no invariant breaks, and all comes right when trouble ends.

What breaks is shrunk to a scenario that is short enough to read, and is written to a file that
`lehr sim play` plays.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from lehr.checks.freeze import FreezeCheck
from lehr.model.decision import Verdict
from lehr.sdk.check import CheckReader, CheckRequest
from lehr.testing.sim.faults import LookFault, PushFault
from lehr.testing.sim.script_arguments import WRITES
from lehr.testing.sim.script_play import Played, play, read
from lehr.testing.sim.suite import scratch, silence

EXAMPLES = int(os.environ.get("SCENARIOS", "40"))
"""How many are played: `SCENARIOS=5000 pytest ...` for a night of it."""

QUICK = settings(
    max_examples=300,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),  # explaining a failure takes longer than finding it
)

NO_TROUBLE = """\
heal
release
store repair
start
repair
slow push 1s
slow look 0s a
slow look 0s b
slow look 0s c
unfreeze all
resume all
unpin all
commit
    a: value 100
    b: value 101, depends on a
    c: value 102, reads a
    launch: gone
    gentle: gone
advance 1m
retry all
advance 30m
settle
judge
"""
"""Trouble ends, and a person looks after what waits for one."""

ids = st.sampled_from("abc")
values = st.integers(1, 9).map(str)


def command(*parts: str | st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A command with these words."""
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map(" ".join)


def _clauses(id: str) -> st.SearchStrategy[str]:
    others = [other for other in "abc" if other < id]
    references = [f", {kind} {other}" for other in others for kind in ("depends on", "sends to", "reads")]
    return st.builds(
        "    {}: value {}{}{}".format,
        st.just(id),
        values,
        st.sampled_from(["", *references]),
        st.sampled_from(["", ", destroys", ", turndown", ", turndown after 10s fence 20s"]),
    )


governing = st.sampled_from(
    [
        "    launch: lehr.Freeze\n        {select: {ids: [a, b]}, reason: launch}",
        "    gentle: lehr.RateLimit\n        {select: {all: true}, pushes: 1, per: 20s}",
        "    launch: gone",
        "    gentle: gone",
    ]
)
lines_of_commits = st.one_of(ids.flatmap(_clauses), governing, ids.map("    {}: let go".format))
commits = st.lists(lines_of_commits, min_size=1, max_size=2).map(lambda lines: "\n".join(["commit", *lines]))
times = st.sampled_from(["0.1s", "1s", "5s", "40s"])
for_a_time = st.sampled_from(["", "--for 30s"])
faults = st.one_of(
    command("fault push", ids, st.sampled_from([str(fault) for fault in PushFault])),
    command("fault look", ids, st.sampled_from([str(fault) for fault in LookFault])),
    command("fault hide", ids, times),
    command("fault mute", ids),
    command("slow push", times),
    command("slow look", times, ids),
    command("unreachable"),
    command("heal"),
)
production = st.one_of(command("drift", ids, st.sampled_from(["7", "nothing"])), command("hint", ids))
people = st.one_of(
    command(st.sampled_from(["freeze", "pause"]), ids, for_a_time),
    command(st.sampled_from(["unfreeze", "resume", "unpin", "retry"]), st.just("all")),
    command("pin", ids, "--at 1", for_a_time),
    command("approve", ids),
    st.just("rollback all"),
)
sources = st.sampled_from(["empty", "lose", "repair", "double assets/a.yaml"])
stores = command("store", st.sampled_from(["fail", "unreadable", "lag", "repair"]))
processes = st.one_of(
    command("crash", st.sampled_from(["before", "after"]), st.sampled_from(tuple(WRITES))),
    st.sampled_from(["kill", "start", "kill\nstart", "hold", "release", "second", "clock +1h", "clock -10m"]),
)
commands = st.one_of(
    commits, command("advance", times), faults, production, people, sources, stores, processes
)
some = st.lists(commands, max_size=20)
worlds = command(
    "world --resync 20s --fencing",
    st.sampled_from(["native", "none", "compare-and-swap"]),
    "--pushes",
    st.sampled_from(["8", "1"]),
)
# One list would have six commands on average; asking for more at least would keep it from shrinking.
scripts = st.tuples(worlds.map(lambda world: [world]), some, some, some).map(
    lambda parts: [line for part in parts for line in part]
)


def played(lines: Sequence[str], end: str = NO_TROUBLE) -> Played:
    first = "commit\n    a: value 1"
    text = "\n".join([lines[0], first, *lines[1:], end.rstrip(), "----\n"])
    script, diagnostics = read(text, "generated")
    assert not diagnostics, diagnostics
    with scratch() as folder, silence():
        return play(script, folder)


@settings(QUICK, max_examples=EXAMPLES)
@given(scripts)
def test_no_invariant_breaks_and_all_comes_right_in_the_end(lines: list[str]) -> None:
    found = played(lines)
    if found.failures:
        path = Path(tempfile.gettempdir()) / "lehr-broken-scenario.txt"
        path.write_text(found.script.rewritten(found.outputs))
        pytest.fail(f"{path.read_text()}\n{found.failures}\nplay it again: lehr sim play {path}")


def test_a_planted_defect_is_shrunk_to_a_scenario_that_is_short_enough_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def blind(self: FreezeCheck, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        return []

    monkeypatch.setattr(FreezeCheck, "check", blind)
    # The rule is broken at once: without the calm phase, shrinking takes seconds instead of minutes.
    short = some.map(lambda lines: ["world", *lines])
    lines = find(short, lambda lines: bool(played(lines, "advance 5s").failures), settings=QUICK)
    assert len(lines) < 8
    found = played(lines, "advance 5s")
    assert "is pushed while" in found.failures[0]
    again, diagnostics = read(found.script.rewritten(found.outputs), "again")
    assert not diagnostics
    with scratch() as folder, silence():
        assert play(again, folder).difference == []
