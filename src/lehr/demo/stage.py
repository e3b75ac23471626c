"""The stage of scenes: a folder with a repository, and a control plane over it."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import LehrError
from lehr.demo.client import PortRange
from lehr.demo.narrator import Narrator
from lehr.demo.plane import Plane, program
from lehr.demo.repository import Repository
from lehr.model.asset import AssetId, AssetKey
from lehr.model.attempt import Attempt, Publication
from lehr.model.operation import Operation
from lehr.templates import write_template

_POLL = 0.03
_PATIENCE = 60.0


class SceneError(LehrError):
    """A scene failed.

    Attributes:
        details: several lines for debugging.
    """

    def __init__(self, what: str, *, code: str = "", why: str = "", details: str = "") -> None:
        super().__init__(what, code=code, why=why)
        self.details = details


class Stage:
    """Everything that one demo has started and created: all below `folder`, except the state.

    Args:
        example: name of the template that the workspace is made from.

    Attributes:
        production: folder of everything that the workspace declares.
        run_arguments: those of `lehr run`.
        listen: where `lehr run` serves the page; empty before the ports are taken.
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
        self.run_arguments: tuple[str, ...] = ()
        self.listen = ""
        self._ports: PortRange | None = None

    @property
    def port(self) -> int:
        """The first of the ports that this demo has taken."""
        assert self._ports is not None
        return self._ports.first

    def take_ports(self, count: int) -> None:
        """Take consecutive ports, until the end, and one for the page."""
        self._ports = PortRange(count + 1, Chance())
        self.listen = f"127.0.0.1:{self._ports.first + count}"

    async def make_workspace(self, edits: Mapping[str, Callable[[str], str]]) -> str:
        """`lehr init`, and a commit with `edits`, by path. Returns the commit."""
        self.narrator.shell(("lehr", "init", "--template", self.example, str(self.workspace)))
        await self.repository.make(write_template(self.example, self.workspace))
        changed: dict[str, str | None] = {
            path: edit(self.repository.read(path)) for path, edit in edits.items()
        }
        return await self.repository.commit("Ports that are free on this machine", changed)

    async def close(self, *, keep: bool) -> None:
        """End everything that was started, and nothing else; delete folder and state unless kept."""
        await self.plane.stop()
        await self.plane.stop_production()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.rmtree(self.plane.state, ignore_errors=True)
        if self._ports is not None:
            self._ports.release()

    # --- doing -----------------------------------------------------------------------

    async def lehr(self, *arguments: str, show: bool = True, expected: int = 0) -> str:
        """Run a `lehr` command, show it, and return its output."""
        code, output = await self.plane.ask(*arguments)
        if show:
            self.narrator.shell(("lehr", *arguments), output)
        if code != expected:
            raise SceneError(
                f"`lehr {' '.join(arguments)}` exited with {code}, not {expected}",
                code="DEM114",
                details=output,
            )
        return output

    async def start(self) -> float:
        """Start `lehr run`. Returns the monotonic time of the start."""
        arguments = (*self.run_arguments, "--listen", self.listen)
        self.narrator.shell(("lehr", "run", *arguments))
        began = self.clock.monotonic()
        await self.plane.start(*arguments)
        return began

    def show_page(self) -> None:
        """Show how to watch all of this in a browser."""
        self.narrator.say("In another terminal, open a page that shows what happens, and why:")
        self.narrator.shell((program(), "open", "--server", f"http://{self.listen}"))

    async def kill_run(self) -> None:
        """Kill `lehr run` without notice."""
        self.narrator.shell(("kill", "-9", str(self.plane.process)))
        await self.plane.kill()

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

        await self.until(f"commit {commit[:8]} is processed", seen)
        return found[-1]

    async def converged(self) -> None:
        """Wait until everything matches the newest incarnation."""
        await self.until("everything is as intended", lambda: not self.plane.waiting())

    def operations(self, asset: str) -> list[Operation]:
        """Pushes of `asset`, newest first."""
        return [operation for operation in self.plane.operations() if operation.asset == asset]

    def status(self, asset: str) -> tuple[str, str]:
        """Status and reason of `asset`; empty before its first turn."""
        with self.plane.content() as reading:
            standing = reading.records.standing(AssetKey(reading.partition, AssetId(asset)))
        return ("", "") if standing is None else (str(standing.condition.status), standing.condition.reason)

    def traffic_summary(self) -> str:
        """One line about the clients and their answers; empty without clients."""
        return ""

    # --- judging ---------------------------------------------------------------------

    async def until(self, what: str, holds: Callable[[], bool | Awaitable[bool]]) -> float:
        """Wait until `holds()`; returns the seconds that took.

        Raises:
            SceneError: it does not become true in time; reports the actual status.
        """
        began = self.clock.monotonic()
        while True:
            answer = holds()
            if answer if isinstance(answer, bool) else await answer:
                return self.clock.monotonic() - began
            self.plane.check_running()
            if self.clock.monotonic() - began > _PATIENCE:
                what = f"timed out after {_PATIENCE:g}s waiting until {what}"
                raise SceneError(what, code="DEM115", details="\n".join(self.circumstances()))
            await self.clock.sleep(_POLL)

    def check(self, holds: bool, claim: str) -> None:
        """Report that `claim` holds.

        Raises:
            SceneError: it does not.
        """
        if not holds:
            raise SceneError(f"check failed: {claim}", code="DEM116", details="\n".join(self.circumstances()))
        self.narrator.holds(claim)

    async def refused(
        self,
        message: str,
        edits: Mapping[str, str | None],
        meant: Callable[[Diagnostic], bool],
        fingerprint: Callable[[], Awaitable[object]],
        untouched: str,
    ) -> None:
        """Commit a mistake, check that it is refused with its place and changes nothing, and undo it.

        Args:
            meant: whether a problem is the one that the mistake should have.
            fingerprint: changes when anything in production is touched.
            untouched: the claim that nothing was.
        """
        before = await fingerprint()
        attempt = await self.commit(message, edits)
        await self.lehr("validate", expected=1)
        refused = attempt.publication is Publication.REFUSED
        self.check(refused, f"refused; incarnation {attempt.sequence} stays in force")
        found = [item.at for item in attempt.diagnostics if meant(item)]
        self.check(bool(found), f"the error points to {found[0] if found else 'nowhere'}")
        self.check(await fingerprint() == before, untouched)
        undone = await self.revert()
        self.check(undone.publication is Publication.UNCHANGED, "after the revert, there is nothing to do")

    async def removal_refused(self, message: str, edits: Mapping[str, str | None]) -> None:
        """Commit the removal of a declaration, and check that it is refused."""
        attempt = await self.commit(message, edits)
        output = await self.lehr("validate", expected=1)
        self.check(attempt.publication is Publication.REFUSED, "refused")
        self.check("lehr.Turndown" in output and "let_go" in output, "the error names both ways out")

    def circumstances(self) -> list[str]:
        """Lines for debugging a scene that failed."""
        return [*self.plane.waiting(), self.plane.end_of_log()]


def reads(file: Path, text: str) -> bool:
    """Whether `file` exists and contains exactly `text`."""
    try:
        return file.read_text() == text
    except FileNotFoundError:
        return False
