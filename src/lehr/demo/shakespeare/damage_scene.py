"""Scene 5: things are broken by hand, one after the other, without notifying Lehr."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from lehr.demo.shakespeare.audience import ask
from lehr.demo.shakespeare.stage import ShakespeareStage

_ENDPOINTS = "production/frontend/eu/envoy/eds/backends.json"


async def damage(stage: ShakespeareStage) -> None:
    """Broken by hand: seen, and healed."""
    stage.narrator.say("Now things are killed, stopped, edited and dropped by hand. Nobody tells Lehr.")
    audience = stage.seated()
    heard, lost = audience.total, audience.lost
    await _replicas_killed(stage)
    await _program_stopped(stage)
    await _file_edited(stage)
    await _index_dropped(stage)
    stage.check(audience.lost == lost, f"so far 0 of {audience.total - heard} requests were lost")
    await _envoy_killed(stage)
    await _database_stopped(stage)
    await stage.converged()
    gone = audience.lost - lost
    stage.check(True, f"{gone} requests were lost, while there was no balancer or no database to ask")
    await stage.lehr("why", "database/schema")


async def _replicas_killed(stage: ShakespeareStage) -> None:
    processes = (await stage.processes(stage.first_port("eu"), 3))[:2]
    for process in processes:
        stage.kill(process, signal.SIGKILL)

    async def replaced() -> bool:
        return await stage.serving("eu", 3) and not {*processes} & {
            *await stage.processes(stage.first_port("eu"), 3)
        }

    await stage.healed("both replicas that were killed run again", replaced)


async def _program_stopped(stage: ShakespeareStage) -> None:
    await stage.supervisorctl("frontend-eu", "stop", "shakespeare=frontend+eu+job-0")
    await stage.healed(
        "the replica that was stopped in supervisord runs again", lambda: stage.serving("eu", 3)
    )


async def _file_edited(stage: ShakespeareStage) -> None:
    file = stage.workspace / _ENDPOINTS
    intended = file.read_text()
    stage.narrator.shell(("sed", "-i", "s/127.0.0.1/127.0.0.9/", _ENDPOINTS))
    file.write_text(intended.replace("127.0.0.1", "127.0.0.9"))
    await stage.healed("Envoy's file is as it was", lambda: _reads(file, intended))


async def _index_dropped(stage: ShakespeareStage) -> None:
    mark = stage.last_push()
    await stage.sql("DROP INDEX lines_by_play")
    await stage.healed("the index is there again", lambda: bool(stage.pushes("database/schema", after=mark)))
    found = await stage.sql("SELECT count(*) FROM pg_indexes WHERE indexname = 'lines_by_play'")
    stage.check(found.strip() == "1", "the database says so, too")


async def _envoy_killed(stage: ShakespeareStage) -> None:
    bootstrap = stage.workspace / "production/frontend/global/envoy/bootstrap.json"
    [process] = _running(str(bootstrap))
    stage.kill(process, signal.SIGKILL)

    async def back() -> bool:
        return _running(str(bootstrap)) not in ([], [process]) and await _answers(stage)

    await stage.healed("the Envoy over all clusters is back, and serves", back)


async def _database_stopped(stage: ShakespeareStage) -> None:
    lock = stage.production / "postgres" / "postmaster.pid"
    process = int(lock.read_text().split()[0])
    stage.kill(process, signal.SIGINT)

    async def back() -> bool:
        try:
            return int(lock.read_text().split()[0]) != process and await _answers(stage)
        except (OSError, ValueError, IndexError):
            return False  # the file is not there, or not whole, while it starts

    await stage.healed("PostgreSQL is back, and so are the answers", back)


async def _answers(stage: ShakespeareStage) -> bool:
    try:
        return (await ask(stage.port)).status == 200
    except OSError:
        return False


def _reads(file: Path, text: str) -> bool:
    try:
        return file.read_text() == text
    except FileNotFoundError:
        return False


def _running(argument: str) -> list[int]:
    """Pids of the processes that were started with `argument`."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            arguments = Path("/proc", entry, "cmdline").read_bytes().split(b"\0") if entry.isdecimal() else []
        except OSError:
            continue  # it has ended
        if argument.encode() in arguments:
            found.append(int(entry))
    return found
