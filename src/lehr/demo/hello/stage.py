"""Where the scenes of the hello example play: a page, and a program that serves it in two replicas."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from lehr.base.clock import Clock
from lehr.demo.client import Response, Traffic, ask
from lehr.demo.narrator import Narrator
from lehr.demo.stage import Stage

SITE = "sites/hello.yaml"
FILES = "assets/files.yaml"
REPLICAS = 2


class HelloStage(Stage):
    """A stage with a web site."""

    def __init__(self, folder: Path, narrator: Narrator, clock: Clock) -> None:
        super().__init__(folder, narrator, clock, "hello")

    @property
    def ports(self) -> list[int]:
        """Those of the replicas."""
        return list(range(self.port, self.port + REPLICAS))

    @property
    def page(self) -> Path:
        return self.production / "hello" / "index.html"

    @property
    def motd(self) -> Path:
        return self.production / "hello" / "motd.txt"

    async def make_site(self) -> str:
        """`lehr init`, with ports that are free. Returns the commit."""
        self.take_ports(REPLICAS)
        return await self.make_workspace({SITE: lambda text: text.replace("8420", str(self.port))})

    def greet(self, greeting: str) -> dict[str, str | None]:
        """The edit that changes the greeting of the site."""
        lines = self.repository.read(SITE).splitlines()
        changed = [f"greeting: {greeting}" if line.startswith("greeting:") else line for line in lines]
        return {SITE: "\n".join(changed) + "\n"}

    def traffic(self) -> contextlib.AbstractAsyncContextManager[Traffic]:
        """A client that sends requests while its context is active."""
        return Traffic(self.ports, self.clock).sent()

    async def processes(self) -> list[int]:
        """The pid of each replica."""
        return [answer.process for answer in await self.answers()]

    async def answers(self) -> list[Response]:
        """The answer of each replica."""
        return [await ask(port) for port in self.ports]

    async def served(self, greeting: str) -> None:
        """Wait until every replica answers with `greeting`."""

        async def all_do() -> bool:
            try:
                return all(greeting in answer.body for answer in await self.answers())
            except OSError:
                return False

        await self.until(f"every replica answers {greeting!r}", all_do)

    async def fingerprint(self) -> object:
        """Changes when anything in production is touched: a file rewritten, a process started."""
        files = {
            path.relative_to(self.production): (path.stat().st_ino, path.stat().st_mtime_ns, _digest(path))
            for path in sorted(self.production.rglob("*"))
            if path.is_file() and path.suffix != ".pyc"
        }
        return files, await self.processes()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
