"""What `lehr top` shows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from lehr.cli.top import Top, top_document, top_lines
from lehr.model.asset import AssetId
from lehr.query.activity import Activity, Blocked, Failing, Restarting, RunningPush
from lehr.query.partition_view import Reading
from lehr.query.run_state import Load, RunState, idle

NOW = 10_000.0
READING = cast(Reading, SimpleNamespace(now=NOW))
QUIET = Activity({"Converged": 3}, 0.0, 0.0, 0, (), (), (), ())
BUSY = Activity(
    counts={"Pushing": 1, "Retrying": 2},
    pushes_per_second=0.5,
    failures_per_second=0.25,
    open_pushes=12,
    running=(RunningPush(AssetId("web"), "lehr.Process", "o1", "forward", NOW - 90, 90.0, True),),
    blocked=(Blocked("Retrying", "PushFailed", "lehr.File", 2, AssetId("motd"), NOW - 60),),
    failing=(Failing(AssetId("motd"), "lehr.File", 5, "no\nspace"),),
    restarting=(Restarting(AssetId("web"), 9, True),),
)
ACTIVE = RunState(active=True, now=NOW, process=7, load=Load(turns=40, queued={"A": 2, "B": 0, "C": 1}))


def test_without_work_there_are_no_tables() -> None:
    assert list(top_lines(Top(idle(NOW), None, QUIET), READING, None)) == [
        "running     no: never active on this state",
        "load        0.00 pushes/s, 0.00 failures/s",
        "assets      3 Converged",
    ]


def test_each_kind_of_work_has_a_table() -> None:
    assert list(top_lines(Top(ACTIVE, 1234.5, BUSY), READING, None)) == [
        "running     yes, process 7",
        "load        1,234.5 turns/s, 3 turns queued (A 2, C 1), 0.50 pushes/s, 0.25 failures/s",
        "assets      1 Pushing, 2 Retrying",
        "",
        "Pushes under way: 12",
        "ASSET  TYPE          PURPOSE                   FOR",
        "web    lehr.Process  forward, outcome unknown  1m30s",
        "",
        "Not settled, by reason and type:",
        "ASSETS  STATUS    REASON      TYPE       LONGEST  SINCE",
        "2       Retrying  PushFailed  lehr.File  motd     1m",
        "",
        "Failed pushes of the last 10 minutes:",
        "FAILURES  ASSET  TYPE       MESSAGE",
        "5         motd   lehr.File  no\\nspace",
        "",
        "Restarts of programs since their last push:",
        "RESTARTS  ASSET  CRASH LOOP",
        "9         web    yes",
    ]


def test_the_document_has_everything_with_times_as_text() -> None:
    document = top_document(Top(ACTIVE, 2.0, BUSY))
    assert (document["turns_per_second"], document["run"]["load"]["turns"]) == (2.0, 40)
    assert document["running"][0]["started_at"] == "1970-01-01T02:45:10.000000Z"
    assert document["blocked"][0]["count"] == 2
