"""A workspace that somebody edits without a pause, and what its author remembers of it."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lehr.base.errors import LehrError
from lehr.control.messages import Freeze
from lehr.control.socket import send
from tests.e2e.bad_input.workspace import Running, Workspace

FILES = 6
COMMANDS = 2
REPLICAS = 2
WORKER = "worker"
STILL = "still"
"""A file that never changes, so that freezes of it are no hindrance."""

_SLOW = """\
exec 9>>"{lock}"
flock -n 9 || echo "{id} {serial} while another one ran" >>"{violations}"
echo {serial} >>"{journal}"
sleep {seconds}
echo {serial} >"{done}"
"""


class Edition(NamedTuple):
    """What one commit declares: the content of each asset, by id."""

    commit: str
    contents: Mapping[str, str]


class Shop(Workspace):
    """Files, commands and a process, whose content only ever grows in its serial number.

    Attributes:
        editions: all that was ever committed, oldest first.
        editing: held while a commit is made, until it is among the editions.
        words: reasons of all freezes that were acknowledged.
        violations: a line for each command that ran beside itself.
    """

    def __init__(self, folder: Path, chance: random.Random) -> None:
        super().__init__(folder)
        self._chance = chance
        self._serial = 0
        self._contents: dict[str, str] = {}
        self._guests: list[str] = []
        self._leaving: list[str] = []
        self._gone: list[str] = []
        self.editions: list[Edition] = []
        self.editing = threading.Lock()
        self.words: list[str] = []
        self.violations = folder / "violations"
        self.mark = f"{folder}:"
        budget = {"removals": 1_000_000, "per_seconds": 1.0}
        self.declare("budget", "lehr.DeletionBudget", budget)
        self._change_file(STILL)
        for number in range(FILES):
            self._change_file(f"file-{number}")
        for number in range(COMMANDS):
            self._change_command(f"command-{number}")
        self._change_worker()
        self._publish()

    # --- edits ------------------------------------------------------------------------

    def edit(self) -> None:
        """Change something, and commit it."""
        for _ in range(self._chance.randint(1, 3)):
            chosen = self._chance.random()
            if chosen < 0.6:
                self._change_file(f"file-{self._chance.randrange(FILES)}")
            elif chosen < 0.75:
                self._change_command(f"command-{self._chance.randrange(COMMANDS)}")
            elif chosen < 0.8:
                self._change_worker()
            else:
                self._change_guests()
        self._publish()

    def slow_edit(self, id: str) -> None:
        """Change a command, whose push then takes its time, and commit that."""
        self._change_command(id, tenths=20)
        self._publish()

    def speak(self) -> None:
        """Freeze what is made. Whether that came to anything is not known, unless it is acknowledged."""
        if not self.made(STILL).exists():
            return  # a freeze would hold it back for good
        reason = f"word {self._next()}"
        with contextlib.suppress(LehrError):
            if send(self.state, Freeze(selector=STILL, reason=reason)).ok:
                self.words.append(reason)

    @contextlib.contextmanager
    def edited(self, pauses: random.Random) -> Iterator[None]:
        """Somebody edits, and says a word now and then, for as long as the context lasts."""
        ended, errors = threading.Event(), list[BaseException]()

        def edit_for_ever() -> None:
            try:
                while not ended.wait(pauses.uniform(0.0, 0.2)):
                    self.edit()
                    if pauses.random() < 0.2:
                        self.speak()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=edit_for_ever)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        if errors:
            raise errors[0]

    def _publish(self) -> None:
        with self.editing:
            commit = self.commit()
            self.editions.append(Edition(commit, dict(self._contents)))

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def _change_file(self, id: str) -> None:
        content = f"{id} {self._next()}\n"
        self.declare_file(id, content)
        self._contents[id] = content

    def _change_command(self, id: str, tenths: int | None = None) -> None:
        serial = self._next()
        tenths = self._chance.randint(0, 6) if tenths is None else tenths
        done = self.made(id)
        apply = _SLOW.format(
            id=id,
            serial=serial,
            done=done,
            journal=self.journal(id),
            lock=self.folder / f"{id}.lock",
            violations=self.violations,
            seconds=tenths / 10,
        )
        check = f'test "$(cat "{done}" 2>/dev/null)" = {serial} || {{ echo other than {serial}; exit 1; }}'
        self.declare(id, "lehr.Command", {"check": check, "apply": apply})
        self._contents[id] = f"{serial}\n"

    def _change_worker(self) -> None:
        serial = self._next()
        payload: dict[str, Any] = {
            "command": ["sleep", "1000000"],
            "environment": {"SHOP": f"{self.mark}{serial}"},
            "replicas": REPLICAS,
        }
        self.declare(WORKER, "lehr.Process", payload)
        self._contents[WORKER] = str(serial)

    def settled(self) -> None:
        """All that was committed so far is in force: what was turned down need not be declared any more."""
        with self.editing:
            self._gone += self._leaving
            self._leaving.clear()

    def _change_guests(self) -> None:
        """A file comes, is turned down, or, turned down and removed, is not declared any more."""
        standing = [id for id in self._guests if id in self._contents]
        if self._gone:
            id = self._gone.pop(0)
            (self.repository / f"assets/{id}.json").unlink()
            self._guests.remove(id)
        elif len(standing) > 2:
            id = standing[0]
            self.declare(id, "lehr.File", self._guest(id), Turndown={"reason": "leaves"})
            del self._contents[id]
            self._leaving.append(id)
        else:
            id = f"guest-{self._next()}"
            self.declare(id, "lehr.File", self._guest(id))
            self._guests.append(id)
            self._contents[id] = f"{id}\n"

    def _guest(self, id: str) -> dict[str, Any]:
        return {"path": str(self.production / f"{id}.txt"), "content": f"{id}\n"}

    # --- production ---------------------------------------------------------------------

    def made(self, id: str) -> Path:
        """The file in production that the asset `id` makes."""
        return self.production / f"{id}.txt"

    def journal(self, id: str) -> Path:
        """The serial numbers that a command was run with, in order."""
        return self.folder / f"{id}.journal"

    def works_on(self, id: str) -> bool:
        """Whether a command that is to bring about what is intended has begun."""
        return self.journal(id).read_text().endswith(f"\n{self.intended()[id]}")

    def produced(self) -> dict[str, str]:
        """What production holds: all files by name, and the worker's replicas."""
        found = {path.stem: path.read_text() for path in self.production.iterdir()}
        return found | {WORKER: " ".join(self._workers())}

    def intended(self) -> dict[str, str]:
        """What it is to hold."""
        contents = self.editions[-1].contents
        return {**contents, WORKER: " ".join([contents[WORKER]] * REPLICAS)}

    def _workers(self) -> list[str]:
        """The serial number of each replica that runs."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if not entry.name.isdecimal() or (entry / "comm").read_text() != "sleep\n":
                    continue
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # it has ended
            start = f"SHOP={self.mark}".encode()
            found += [item.removeprefix(start).decode() for item in environment if item.startswith(start)]
        return sorted(found)


def kill_after(running: Running, seconds: float) -> None:
    """`kill -9`, so many seconds from now."""
    time.sleep(seconds)
    running.end(signal.SIGKILL)
