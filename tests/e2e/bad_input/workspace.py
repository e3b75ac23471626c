"""A workspace in a git repository, and the real program on it, seen from the outside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lehr.base.errors import LehrError
from lehr.cli.explanation_text import explanation_lines
from lehr.cli.stored import open_reading
from lehr.query.explain import explain

T = TypeVar("T")

LEHR = (sys.executable, "-m", "lehr")
PATIENCE = 20.0
STRICT = (
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search,-fowner",
    "--inh-caps=-dac_override,-dac_read_search,-fowner",
)
"""Root, but files' permissions hold for it as for anybody."""


def until(what: str, look: Callable[[], T | bool | None], otherwise: Callable[[], str] = str) -> T:
    """Wait until `look()` has something to show, and return that. `otherwise` explains if it never has."""
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < deadline, (
            f"in {PATIENCE:g} s it did not come true that {what}\n{otherwise()}"
        )
        time.sleep(0.02)
    return found  # type: ignore[return-value]  # what is true is a T, or True where T is bool


class Done(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    def failed(self, *words: str) -> None:
        """It ended with 1, foresaw that, and said each of `words`."""
        said = f"{self.out}\n{self.err}"
        assert self.code == 1, said
        assert_clear(said, *words)


def assert_clear(said: str, *words: str) -> None:
    """`said` holds each of `words`, and nothing that only we understand."""
    for text in ("Traceback", "internal error:"):
        assert text not in said, said
    flat = " ".join(said.split())
    for word in words:
        assert word in flat, f"{word!r} is not in:\n{said}"


class Running:
    """A `lehr run` under way."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self.pid = process.pid

    def said(self) -> str:
        """All that it has said so far."""
        return self._log.read_text(errors="replace")

    def says(self, first: str, *words: str) -> str:
        """Wait until it has said `first`, and after that each of `words`. All that it said from there on."""

        def look() -> str | None:
            assert self._process.poll() is None, f"it ended with {self._process.returncode}:\n{self.said()}"
            found = self.said().rpartition(first)[1:]
            return "".join(found) if found[0] and _holds("".join(found), words) else None

        return until(f"it says {first!r} and {words}", look, self.said)

    def ended(self) -> int:
        """Wait until it ends by itself; its exit code."""
        return self._process.wait(PATIENCE)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait for the end; the exit code."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self.ended()


class Workspace:
    """A repository at `folder/intent`, its state, and what it makes, in `folder/production`."""

    def __init__(self, folder: Path, *, state: Path | None = None) -> None:
        self.folder = folder
        self.repository = folder / "intent"
        self.production = folder / "production"
        self.state = folder / "state" if state is None else state
        self.environment: dict[str, str] = {
            **os.environ,
            "HOME": str(folder / "nobody"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "NO_COLOR": "1",
            "LEHR_STATE": str(self.state),
        }
        self.production.mkdir(parents=True, exist_ok=True)
        self.write("lehr.yaml", "partition: shop\n")

    # --- intent ----------------------------------------------------------------------

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file of the workspace."""
        file = self.repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def declare(self, id: str, type: str, payload: Mapping[str, Any], **addons: Any) -> None:
        """Write a file that declares one asset."""
        named = {f"lehr.{name}": value for name, value in addons.items()}
        asset = {"id": id, "type": type, "payload": payload, "addons": named}
        self.write(f"assets/{id}.json", json.dumps(asset))

    def declare_file(self, id: str, content: str) -> Path:
        """Declare a file in production; its path."""
        path = self.production / f"{id}.txt"
        self.declare(id, "lehr.File", {"path": str(path), "content": content})
        return path

    def git(self, *arguments: str) -> str:
        """What git says in the repository."""
        return self.git_bytes(*arguments).decode().strip()

    def git_bytes(self, *arguments: str, feed: bytes = b"") -> bytes:
        """As `git`, for what is no text; it reads `feed`."""
        identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
        command = ("git", *identity, "-C", str(self.repository), *arguments)
        return subprocess.run(
            command, env=self.environment, input=feed, capture_output=True, check=True
        ).stdout

    def commit(self, message: str = "Change") -> str:
        """Commit all that was written; the commit's id."""
        if not (self.repository / ".git").exists():
            self.git("init", "--quiet", "--initial-branch=main")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def site(self) -> Path:
        """A folder whose Python packages the program finds, as if pip had put them there."""
        site = self.folder / "site"
        if not site.exists():
            site.mkdir()
            others = filter(None, [os.environ.get("PYTHONPATH")])
            self.environment["PYTHONPATH"] = os.pathsep.join([str(site), *others])
        return site

    # --- the program -----------------------------------------------------------------

    def lehr(self, *arguments: str, prefix: Sequence[str] = ()) -> Done:
        """Run a command to its end."""
        done = subprocess.run(
            [*prefix, *LEHR, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return Done(*(done.returncode, done.stdout, done.stderr))

    def once(self, *arguments: str, prefix: Sequence[str] = ()) -> Done:
        """`lehr run --once` on the repository."""
        return self.lehr("run", str(self.repository), "--once", *arguments, prefix=prefix)

    @contextlib.contextmanager
    def run(
        self, *arguments: str, prefix: Sequence[str] = (), location: str | None = None
    ) -> Iterator[Running]:
        """`lehr run` on the repository, ended with the context if it has not ended before.

        `location` is the repository as the program is to know it; None for its path.
        """
        log = self.folder / "run.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*prefix, *LEHR, "run", location or str(self.repository), *arguments],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        running = Running(process, log)
        try:
            yield running
        finally:
            running.end()

    # --- how things stand ------------------------------------------------------------

    def wait(self, *arguments: str) -> None:
        """`lehr wait`, which must succeed."""
        done = self.lehr("wait", *arguments, "--timeout", f"{PATIENCE:g}s")
        assert done.code == 0, done.err

    def stands(self, id: str, *words: str, prefix: Sequence[str] = ()) -> str:
        """Wait until `lehr why` says each of `words` of an asset; all that it says."""

        def look() -> str | None:
            if not prefix and not _holds(self._explained(id), words):
                return None  # so much can be known without a program
            why = self.lehr("why", id, prefix=prefix).out
            return why if _holds(why, words) else None

        return until(f"{id} is {words}", look, lambda: self.lehr("why", id, prefix=prefix).out)

    def _explained(self, id: str) -> str:
        try:
            with open_reading(self.state) as reading:
                return "\n".join(explanation_lines(explain(reading, id), None, reading.now, alive=True))
        except LehrError:
            return ""  # nothing was published yet

    def sequence(self) -> int:
        """Of the newest incarnation."""
        found = json.loads(self.lehr("get", "incarnations", "-o", "json").out)
        return max(int(item["sequence"]) for item in found)

    def operations(self, id: str) -> list[dict[str, Any]]:
        """The pushes of an asset, newest first."""
        found = json.loads(self.lehr("get", "operations", "-o", "json").out)
        return [item for item in found if item["asset"] == id]


def _holds(said: str, words: Sequence[str]) -> bool:
    flat = " ".join(said.split())
    return all(word in flat for word in words)


def strict() -> Sequence[str]:
    """What to start a program with so that files' permissions hold for it, whoever we are."""
    if os.geteuid() != 0:
        return ()
    assert shutil.which(STRICT[0]), "setpriv (util-linux) is needed to run these tests as root"
    return STRICT
