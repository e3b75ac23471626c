"""Scenes 7 and 8: taking something out of production, and losing the control plane."""

from __future__ import annotations

from lehr.demo.hello.stage import FILES, HelloStage
from lehr.model.attempt import Publication
from lehr.model.operation import Operation, Result

_SLOW = """\
# Something that takes its time, and must not be done twice.
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
    """Deleting is not asking: a turndown is."""
    stage.narrator.say(
        "A file is no longer needed. Deleting its declaration is refused: a missing line is more often a "
        "mistake than a wish."
    )
    files = stage.repository.read(FILES)
    declared, _, rest = files.partition("---\n")
    attempt = await stage.commit("Delete the motd", {FILES: rest})
    said = await stage.lehr("validate", expected=1)
    stage.check(attempt.publication is Publication.REFUSED, "refused")
    stage.check("lehr.Turndown" in said and "let_go" in said, "the answer names both ways out")
    stage.check(stage.motd.exists(), "the file is there")
    await stage.revert()

    stage.narrator.say("So it is said. First the file goes out of service, and can still be brought back.")
    addon = "  lehr.Turndown: {reason: nobody reads it, fence_seconds: 1.5}\n"
    await stage.commit("Turn the motd down", {FILES: f"{declared}{addon}---\n{rest}"})
    fenced = stage.motd.with_name("motd.txt.lehr-fenced")
    await stage.until("the file is fenced", lambda: fenced.exists() and not stage.motd.exists())
    stage.check(True, "fenced: it is out of the way, and still on the disk")
    await stage.until("the file is removed", lambda: not fenced.exists())
    await stage.until("it is turned down", lambda: stage.status("hello/motd")[0] == "TurnedDown")
    await stage.lehr("why", "hello/motd")
    stage.check(not stage.motd.exists(), "removed, when the time was over")
    attempt = await stage.commit("Now its declaration can go", {FILES: rest})
    stage.check(attempt.publication is Publication.PUBLISHED, "and now its declaration may go")
    await stage.converged()


async def crash(stage: HelloStage) -> None:
    """The control plane is killed in the middle of a push."""
    stage.narrator.say(
        "A command that takes a while is under way when `lehr run` is killed with SIGKILL. Production does "
        "not mind. The next `lehr run` finds a push whose end it does not know: it looks before it touches "
        "anything."
    )
    journal = stage.production / "hello" / "journal"
    processes = [answer.process for answer in await stage.answers()]
    async with stage.traffic() as traffic:
        await stage.commit("A migration", {"assets/migration.yaml": _SLOW})
        await stage.until("the command is under way", journal.exists)
        stage.narrator.shell(("kill", "-9", str(stage.plane.process)))
        await stage.plane.kill()
        stage.check(not _migrated(stage), "killed in the middle of the push")
        stage.narrator.shell(("lehr", "run"))
        began = stage.clock.monotonic()
        await stage.plane.start()
        await stage.until("the command has ended", lambda: _migrated(stage))
        await stage.converged()
        seconds = stage.clock.monotonic() - began
    await stage.lehr("why", "hello/migration")
    operations = _operations(stage)
    stage.check(True, f"everything is as intended, {seconds:.1f} s after the restart")
    stage.check(
        journal.read_text().split() == [operations[-1].id], "the command ran once, for the push that was cut"
    )
    stage.check([item.result for item in operations] == [Result.DONE], "that push is known to be done")
    stage.check(
        [answer.process for answer in await stage.answers()] == processes, "the web processes are the same"
    )
    stage.check(traffic.failed == 0, f"0 of {traffic.answered} requests failed meanwhile")


def _migrated(stage: HelloStage) -> bool:
    return (stage.production / "hello" / "migrated").exists()


def _operations(stage: HelloStage) -> list[Operation]:
    with stage.plane.reading() as reading:
        assert reading is not None
        found = reading.records.operations(reading.partition, limit=1000)
        return [operation for operation in found if operation.asset == "hello/migration"]
