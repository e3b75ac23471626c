"""Lines and bytes of the log of `lehr run` while everything fails, for ten minutes of virtual time.

The real Enforcer, committer and store; each push fails, and is retried with growing delays. SIZE is the
number of assets (10,000). The peer is a log with a line for each event.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.enforce_push import PARTITION, Nothing, publish, registry
from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.cli.run_log import rendered
from lehr.control.activity_log import ActivityLog, LogLine
from lehr.enforce.committer import Committer
from lehr.enforce.enforcer import Enforcer
from lehr.model.diff import Target
from lehr.model.operation import Outcome, Result
from lehr.model.writes import Admit, Finish, RecordDecision, Write
from lehr.sdk.plugin import Push, Reader
from lehr.sdk.runtime import Runtime
from lehr.store.sqlite import SqliteStore
from lehr.testing import VirtualClock, run

MINUTES = 10


class Failing(Nothing):
    """Production that refuses every push."""

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        return Outcome(Result.FAILED, "no space left on the device")


async def failing(store: SqliteStore) -> tuple[list[LogLine], int]:
    """The lines of ten minutes, and the number of events that they stand for."""
    clock = VirtualClock()
    log = ActivityLog(clock, lambda id: running.type_of(id))
    lines: list[LogLine] = []
    events: Counter[str] = Counter()

    def committed(writes: Sequence[Write], answers: Sequence[Any]) -> None:
        lines.extend(log.committed(writes, answers))
        events.update(
            type(item).__name__ for item in writes if isinstance(item, Admit | Finish | RecordDecision)
        )

    committer = Committer(store, Inline(), clock, committed)
    commits = asyncio.create_task(committer.run())
    runtime = Runtime(PARTITION, store, registry(), clock, Chance(seed=1), Inline())
    running = Enforcer(runtime, committer, [Failing()], [])
    await running.start("bench")
    for _ in range(MINUTES):
        await clock.sleep(60.0)
        lines.extend(log.due())
    await running.stop(0.0)
    commits.cancel()
    return lines + log.rest(), events.total()


def main() -> None:
    """Print the figures."""
    size = figures.size(10_000)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "state.sqlite")
        publish(store, size)  # outside virtual time
        lines, events = run(lambda: failing(store), seed=1)
        store.close()
    written = sum(len(rendered(line, "json").encode()) + 1 for line in lines)
    causes = Counter((line.event, line.fields.get("reason", "")) for line in lines)
    facts = {"minutes": MINUTES, "causes": len(causes), "most_lines_of_a_cause": max(causes.values())}
    figures.report("lines", len(lines), "lines", size, peer=figures.Peer("events", events), **facts)
    figures.report("log", written / 1e6, "MB", size, form="json")


if __name__ == "__main__":
    main()
