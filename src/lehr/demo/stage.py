"""The stage of scenes: a folder with a repository, and a control plane over it."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.demo.narrator import Narrator
from lehr.demo.plane import Plane
from lehr.demo.repository import Repository
from lehr.model.attempt import Attempt
from lehr.templates import write_template

_POLL = 0.03
_PATIENCE = 60.0


class SceneError(LehrError):
    """A scene did not come out as it should.

    Attributes:
        details: several lines for readers who look into it.
    """

    def __init__(self, what: str, *, code: str = "", why: str = "", details: str = "") -> None:
        super().__init__(what, code=code, why=why)
        self.details = details


class Stage:
    """Everything that one demo has started and made, all of it below `folder` but for the state.

    Args:
        example: name of the template that the workspace is made from.

    Attributes:
        production: folder of everything that the workspace declares.
    """

    def __init__(self, folder: Path, narrator: Narrator, clock: Clock, example: str) -> None:
        self.folder = folder
        self.narrator = narrator
        self.clock = clock
        self.example = example
        self.workspace = folder / example
        self.production = self.workspace / "production"
        self.repository = Repository(self.workspace)
        self.plane = Plane(self.workspace, folder / "lehr-run.log", clock)

    async def make_workspace(self, edits: Mapping[str, Callable[[str], str]]) -> str:
        """`lehr init`, and a commit with `edits`, by path. Returns the commit."""
        self.narrator.shell(("lehr", "init", "--template", self.example, str(self.workspace)))
        await self.repository.make(write_template(self.example, self.workspace))
        changed: dict[str, str | None] = {
            path: edit(self.repository.read(path)) for path, edit in edits.items()
        }
        return await self.repository.commit("Ports that are free on this machine", changed)

    async def close(self, *, keep: bool) -> None:
        """End everything that was started, and nothing else; delete folder and state unless they are kept."""
        await self.plane.stop()
        await self.plane.stop_production()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.rmtree(self.plane.state, ignore_errors=True)

    # --- doing -----------------------------------------------------------------------

    async def lehr(self, *arguments: str, show: bool = True, expected: int = 0) -> str:
        """Run a `lehr` command, show it, and return its output."""
        code, output = await self.plane.ask(*arguments)
        if show:
            self.narrator.shell(("lehr", *arguments), output)
        if code != expected:
            raise SceneError(
                f"`lehr {' '.join(arguments)}` ended with {code}, not {expected}",
                code="DEM114",
                details=output,
            )
        return output

    async def commit(self, message: str, edits: Mapping[str, str | None]) -> Attempt:
        """Commit, show the commit, and wait for the result of the pass over it."""
        self.narrator.shell(("git", "commit", "-m", message))
        return await self.published(await self.repository.commit(message, edits))

    async def revert(self) -> Attempt:
        """Undo the newest commit, and wait for the result."""
        self.narrator.shell(("git", "revert", "HEAD"))
        return await self.published(await self.repository.revert())

    # --- seeing ----------------------------------------------------------------------

    async def published(self, commit: str) -> Attempt:
        """Result of the pass over `commit`."""
        found: list[Attempt] = []

        def seen() -> bool:
            attempt = self.plane.attempt()
            if attempt is not None and any(item.revision == commit for item in attempt.sources):
                found.append(attempt)
            return bool(found)

        await self.until(f"commit {commit[:8]} is looked at", seen)
        return found[-1]

    async def converged(self) -> None:
        """Wait until everything is as the newest incarnation has it."""
        await self.until("everything is as intended", lambda: not self.plane.waiting())

    def operations(self, asset: str) -> int:
        """How many pushes of `asset` there were."""
        with self.plane.reading() as reading:
            assert reading is not None
            found = reading.records.operations(reading.partition, limit=1000)
            return sum(operation.asset == asset for operation in found)

    def status(self, asset: str) -> tuple[str, str]:
        """Status and reason of `asset`; empty before its first turn."""
        with self.plane.reading() as reading:
            assert reading is not None
            for standing in reading.records.standings(reading.partition):
                if standing.asset == asset:
                    return str(standing.condition.status), standing.condition.reason
        return "", ""

    def traffic_told(self) -> str:
        """One line about the clients, and the answers they get; empty without clients."""
        return ""

    # --- judging ---------------------------------------------------------------------

    async def until(self, what: str, holds: Callable[[], bool | Awaitable[bool]]) -> float:
        """Wait until `holds()`; returns the seconds that took.

        Raises:
            SceneError: it does not become true in time; reports how everything is instead.
        """
        began = self.clock.monotonic()
        while True:
            answer = holds()
            if answer if isinstance(answer, bool) else await answer:
                return self.clock.monotonic() - began
            self.plane.check_running()
            if self.clock.monotonic() - began > _PATIENCE:
                what = f"in {_PATIENCE:g} s it did not come true that {what}"
                raise SceneError(what, code="DEM115", details="\n".join(self.circumstances()))
            await self.clock.sleep(_POLL)

    def check(self, holds: bool, claim: str) -> None:
        """Report that `claim` holds.

        Raises:
            SceneError: it does not.
        """
        if not holds:
            raise SceneError(
                f"this does not hold: {claim}", code="DEM116", details="\n".join(self.circumstances())
            )
        self.narrator.holds(claim)

    def circumstances(self) -> list[str]:
        """Lines for a person who looks into a scene that failed."""
        return [*self.plane.waiting(), self.plane.last_words()]
