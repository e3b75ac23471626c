"""Scenes 1 to 3: something serves, changes, is broken, and is made whole again."""

from __future__ import annotations

import os
import signal

from lehr.demo.hello.stage import REPLICAS, HelloStage

HELLO = "Hello, world"


async def from_nothing(stage: HelloStage) -> None:
    """From nothing to serving."""
    stage.narrator.say(
        "A git repository declares a page, a small web program in two replicas, a file and a command. "
        "Nothing of it exists on this machine yet. `lehr run` makes it so, and keeps it so."
    )
    commit = await stage.make_site()
    began = stage.clock.monotonic()
    stage.narrator.shell(("lehr", "run"))
    await stage.plane.start()
    await stage.published(commit)
    await stage.converged()
    await stage.served(HELLO)
    seconds = stage.clock.monotonic() - began
    await stage.lehr("get", "assets")
    stage.check(True, f"both replicas serve the page, {seconds:.1f} s after `lehr run` was started")
    token = stage.production / "token"
    stage.check(token.stat().st_mode & 0o077 == 0, "the command has made a token that git does not know")


async def change(stage: HelloStage) -> None:
    """A change, and nobody notices but for the greeting."""
    stage.narrator.say(
        "A commit changes the greeting. The page comes first, because the process depends on it; then the "
        "replicas are rolled, one at a time, each only when the one before is healthy. All the while a "
        "client keeps asking."
    )
    before = await stage.answers()
    pushes = stage.operations("hello/web")
    async with stage.traffic() as traffic:
        await stage.until("the client is answered", lambda: traffic.answered > 0)
        seconds = stage.clock.monotonic()
        await stage.commit("Another greeting", stage.greet("Hello again"))
        await stage.served("Hello again")
        await stage.converged()
        seconds = stage.clock.monotonic() - seconds
    after = await stage.answers()
    stage.check(
        not {answer.process for answer in before} & {answer.process for answer in after},
        f"both replicas are new, {seconds:.1f} s after the commit",
    )
    stage.check(stage.operations("hello/web") == pushes + 1, "it took one push of the process")
    stage.check(
        len(traffic.bodies) == 2, f"the client has seen both greetings, in {traffic.answered} answers"
    )
    stage.check(traffic.failed == 0, "0 requests failed")


async def damage(stage: HelloStage) -> None:
    """Killed, edited, deleted by hand: healed."""
    stage.narrator.say(
        "Now somebody kills both processes, edits the page by hand, and deletes a file. Nobody tells Lehr."
    )
    processes = [answer.process for answer in await stage.answers()]
    [page, motd] = [stage.page.read_text(), stage.motd.read_text()]

    stage.narrator.shell(("kill", "-9", *map(str, processes)))
    for process in processes:
        os.kill(process, signal.SIGKILL)
    seconds = await stage.until("both replicas are up again", lambda: _replaced(stage, processes))
    stage.check(True, f"{REPLICAS} new processes answer, after {seconds:.1f} s")

    stage.narrator.shell(("sed", "-i", "s/Hello/Goodbye/", "production/hello/index.html"))
    stage.page.write_text(page.replace("Hello", "Goodbye"))
    seconds = await stage.until("the page is as it was", lambda: _reads(stage.page, page))
    stage.check(True, f"the page is as git has it, after {seconds:.2f} s")

    stage.narrator.shell(("rm", "production/hello/motd.txt"))
    stage.motd.unlink()
    seconds = await stage.until("the file is back", lambda: _reads(stage.motd, motd))
    stage.check(True, f"the file is back, after {seconds:.2f} s")
    await stage.converged()
    stage.narrator.say("That was no restart from scratch: Lehr knows, and says, what it found and did.")
    await stage.lehr("why", "hello/motd")


async def _replaced(stage: HelloStage, processes: list[int]) -> bool:
    try:
        return not {answer.process for answer in await stage.answers()} & set(processes)
    except OSError:
        return False


def _reads(path: os.PathLike[str], text: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read() == text
    except FileNotFoundError:
        return False
