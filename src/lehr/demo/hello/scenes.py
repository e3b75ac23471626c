"""The scenes: a service starts, changes and is repaired; mistakes are refused; an asset is removed."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from lehr.base.diagnostics import Diagnostic
from lehr.demo.hello.stage import FILES, REPLICAS, HelloStage
from lehr.demo.stage import reads
from lehr.model.attempt import Publication
from lehr.model.operation import Result
from lehr.model.reason import Reason

_SLOW = """\
# A slow command that must not run twice.
id: hello/migration
type: lehr.Command
payload:
  check: test -e production/hello/migrated
  apply: |
    echo "$LEHR_OPERATION" >> production/hello/journal
    sleep 1.5
    touch production/hello/migrated
"""


async def turndown(stage: HelloStage) -> None:
    """Deleting a declaration removes nothing: that takes a turndown."""
    stage.narrator.say(
        "A file is no longer needed. Deleting its declaration is refused, because a missing line is often a "
        "mistake."
    )
    files = stage.repository.read(FILES)
    declared, _, rest = files.partition("---\n")
    await stage.removal_refused("Delete the motd", {FILES: rest})
    stage.check(stage.motd.exists(), "the file is there")
    await stage.revert()

    stage.narrator.say("So we declare a turndown. First the file is moved aside, and can still be restored.")
    addon = "  lehr.Turndown: {reason: no longer used, fence_seconds: 1.5}\n"
    await stage.commit("Turn the motd down", {FILES: f"{declared}{addon}---\n{rest}"})
    fenced = stage.motd.with_name("motd.txt.lehr-fenced")
    await stage.until("the file is fenced", lambda: fenced.exists() and not stage.motd.exists())
    stage.check(True, "fenced: it is moved aside, but still on the disk")
    await stage.until("the file is removed", lambda: not fenced.exists())
    await stage.until("it is turned down", lambda: stage.status("hello/motd")[0] == "TurnedDown")
    await stage.lehr("why", "hello/motd")
    stage.check(not stage.motd.exists(), "removed after the fence time")
    attempt = await stage.commit("Now its declaration can go", {FILES: rest})
    stage.check(attempt.publication is Publication.PUBLISHED, "the declaration can now be deleted")
    await stage.converged()


async def crash(stage: HelloStage) -> None:
    """The control plane is killed in the middle of a push."""
    stage.narrator.say(
        "A slow command is running when `lehr run` is killed with SIGKILL. Production is not affected. "
        "The next `lehr run` finds a push with unknown outcome: it observes production before it touches "
        "anything."
    )
    journal = stage.production / "hello" / "journal"
    processes = await stage.processes()
    async with stage.traffic() as traffic:
        await stage.commit("A migration", {"assets/migration.yaml": _SLOW})
        await stage.until("the command is running", journal.exists)
        await stage.kill_run()
        stage.check(not _migrated(stage), "killed in the middle of the push")
        began = await stage.start()
        await stage.until("the command has ended", lambda: _migrated(stage))
        await stage.converged()
        seconds = stage.clock.monotonic() - began
    await stage.lehr("why", "hello/migration")
    operations = stage.operations("hello/migration")
    stage.check(True, f"everything is as intended, {seconds:.1f} s after the restart")
    stage.check(
        journal.read_text().split() == [operations[-1].id], "the command ran once, for the interrupted push"
    )
    stage.check([item.result for item in operations] == [Result.DONE], "that push is recorded as done")
    stage.check(await stage.processes() == processes, "the web processes were not restarted")
    stage.check(traffic.failed == 0, f"0 of {traffic.answered} requests failed during this time")


def _migrated(stage: HelloStage) -> bool:
    return (stage.production / "hello" / "migrated").exists()


async def mistakes(stage: HelloStage) -> None:
    """Mistakes are refused with file and line, and nothing is touched."""
    stage.narrator.say(
        "Three wrong commits. Each is refused as a whole, with the location of every problem; the last "
        "incarnation stays in force. `lehr validate` reports the same before you commit."
    )
    files = stage.repository.read(FILES)
    broken = files.replace("type: lehr.Command", "type: [lehr.Command")
    await _refused(stage, "A forgotten bracket", {FILES: broken}, lines=True)
    dangling = files.replace("  lehr.Owner:", "  lehr.DependsOn: {assets: [hello/pge]}\n  lehr.Owner:")
    await _refused(stage, "A reference to nothing", {FILES: dangling}, lines=True)
    emptied = dict.fromkeys((FILES, "assets/limits.yaml"))
    await _refused(stage, "An emptied directory", emptied, lines=False)


async def _refused(stage: HelloStage, message: str, edits: Mapping[str, str | None], *, lines: bool) -> None:
    def meant(item: Diagnostic) -> bool:
        return item.at is not None and item.at.file == FILES and (item.at.line > 0 or not lines)

    await stage.refused(message, edits, meant, stage.fingerprint, "no file and no process was touched")


async def freeze(stage: HelloStage) -> None:
    """A freeze stops pushes, and `lehr why` explains it."""
    stage.narrator.say(
        "A freeze takes effect immediately, without a commit. Changes are still published, but they wait."
    )
    before = await stage.fingerprint()
    await stage.lehr("freeze", "hello/*", "--reason", "guests are in the house")
    await stage.commit("A greeting for later", stage.greet("Hello, later"))
    await stage.until(
        "the page waits for the freeze", lambda: stage.status("hello/page") == ("Waiting", Reason.FROZEN)
    )
    answer = await stage.lehr("why", "hello/page")
    stage.check("guests are in the house" in answer, "`lehr why` shows the freeze and its reason")
    stage.check(await stage.fingerprint() == before, "production is unchanged")
    await stage.lehr("unfreeze", "hello/*")
    seconds = await stage.until("the page is replaced", lambda: "later" in stage.page.read_text())
    stage.check(True, f"after the freeze is lifted, the page is replaced within {seconds:.2f} s")
    await stage.served("Hello, later")
    await stage.converged()


async def why(stage: HelloStage) -> None:
    """Why does production look like this?"""
    stage.narrator.say(
        "Every new decision is recorded: its inputs, the verdict of every check, and the action. So "
        "`lehr why` can explain what blocks an asset, and also what went well."
    )
    answer = await stage.lehr("why", "hello/web")
    operations, last = stage.plane.operations(), stage.operations("hello/web")[0]
    with stage.plane.content() as reading:
        decisions = reading.records.decisions(reading.partition, limit=10_000)
    explained = {decision.operation for _number, decision in decisions}
    stage.check(last.id in answer, "the answer names the push that brought it there")
    stage.check(
        all(operation.id in explained for operation in operations),
        f"each of the {len(operations)} pushes so far has a recorded decision",
    )


HELLO = "Hello, world"


async def from_nothing(stage: HelloStage) -> None:
    """From nothing to serving."""
    stage.narrator.say(
        "A git repository declares a page, a small web program in two replicas, a file and a command. "
        "None of it exists on this machine yet. `lehr run` creates it and keeps it running."
    )
    commit = await stage.make_site()
    began = await stage.start()
    stage.show_page()
    await stage.published(commit)
    await stage.converged()
    await stage.served(HELLO)
    seconds = stage.clock.monotonic() - began
    await stage.lehr("get", "assets")
    stage.check(True, f"both replicas serve the page, {seconds:.1f} s after `lehr run` was started")
    token = stage.production / "token"
    stage.check(token.stat().st_mode & 0o077 == 0, "the command created a token that is not in git")


async def change(stage: HelloStage) -> None:
    """A change without downtime."""
    stage.narrator.say(
        "A commit changes the greeting. The page is pushed first, because the process depends on it; then "
        "the replicas restart one at a time, each only when the previous one is healthy. A client sends "
        "requests all the time."
    )
    before = await stage.processes()
    pushes = len(stage.operations("hello/web"))
    async with stage.traffic() as traffic:
        await stage.until("the client gets answers", lambda: traffic.answered > 0)
        seconds = stage.clock.monotonic()
        await stage.commit("Another greeting", stage.greet("Hello again"))
        await stage.served("Hello again")
        await stage.converged()
        seconds = stage.clock.monotonic() - seconds
    stage.check(
        not {*before} & {*await stage.processes()},
        f"both replicas are new, {seconds:.1f} s after the commit",
    )
    stage.check(len(stage.operations("hello/web")) == pushes + 1, "one push of the process was enough")
    stage.check(len(traffic.bodies) == 2, f"the client saw both greetings in {traffic.answered} answers")
    stage.check(traffic.failed == 0, "0 requests failed")


async def damage(stage: HelloStage) -> None:
    """Killed, edited, deleted by hand: repaired."""
    stage.narrator.say(
        "Now we kill both processes, edit the page by hand, and delete a file, without notifying Lehr."
    )
    processes = await stage.processes()
    [page, motd] = [stage.page.read_text(), stage.motd.read_text()]

    stage.narrator.shell(("kill", "-9", *map(str, processes)))
    for process in processes:
        os.kill(process, signal.SIGKILL)
    seconds = await stage.until("both replicas are up again", lambda: _replaced(stage, processes))
    stage.check(True, f"{REPLICAS} new processes answer after {seconds:.1f} s")

    stage.narrator.shell(("sed", "-i", "s/Hello/Goodbye/", "production/hello/index.html"))
    stage.page.write_text(page.replace("Hello", "Goodbye"))
    seconds = await stage.until("the page is restored", lambda: reads(stage.page, page))
    stage.check(True, f"the page matches git again after {seconds:.2f} s")

    stage.narrator.shell(("rm", "production/hello/motd.txt"))
    stage.motd.unlink()
    seconds = await stage.until("the file is back", lambda: reads(stage.motd, motd))
    stage.check(True, f"the file is back after {seconds:.2f} s")
    await stage.converged()
    stage.narrator.say("Lehr did not start from scratch: it explains what it found and did.")
    await stage.lehr("why", "hello/motd")


async def _replaced(stage: HelloStage, processes: list[int]) -> bool:
    try:
        return not {*await stage.processes()} & {*processes}
    except OSError:
        return False
