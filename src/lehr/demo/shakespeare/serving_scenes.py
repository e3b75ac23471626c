"""Scenes 1 to 5: a service starts, shrinks and grows, gets a new version and a new cluster; damage."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from lehr.demo.client import ask
from lehr.demo.shakespeare.stage import FRONTEND, SCHEMA, ShakespeareStage
from lehr.demo.stage import reads

_ENDPOINTS = "production/frontend/eu/envoy/eds/backends.json"


async def damage(stage: ShakespeareStage) -> None:
    """Broken by hand: detected and repaired."""
    stage.narrator.say("Now we kill, stop, edit and drop things by hand, without notifying Lehr.")
    audience = stage.seated()
    answered, lost = audience.total, audience.lost
    await _replicas_killed(stage)
    await _program_stopped(stage)
    await _file_edited(stage)
    await _index_dropped(stage)
    stage.check(audience.lost == lost, f"so far 0 of {audience.total - answered} requests were lost")
    await _envoy_killed(stage)
    await _database_stopped(stage)
    await stage.converged()
    gone = audience.lost - lost
    stage.check(True, f"{gone} requests were lost while the balancer or the database was down")
    await stage.lehr("why", "database/schema")


async def _replicas_killed(stage: ShakespeareStage) -> None:
    processes = (await stage.processes(stage.first_port("eu"), 3))[:2]
    for process in processes:
        stage.kill(process, signal.SIGKILL)

    async def replaced() -> bool:
        return await stage.serving("eu", 3) and not {*processes} & {
            *await stage.processes(stage.first_port("eu"), 3)
        }

    await stage.healed("both killed replicas are running again", replaced)


async def _program_stopped(stage: ShakespeareStage) -> None:
    await stage.supervisorctl("frontend-eu", "stop", "shakespeare=frontend+eu+job-0")
    await stage.healed("the replica stopped in supervisord is running again", lambda: stage.serving("eu", 3))


async def _file_edited(stage: ShakespeareStage) -> None:
    file = stage.workspace / _ENDPOINTS
    intended = file.read_text()
    stage.narrator.shell(("sed", "-i", "s/127.0.0.1/127.0.0.9/", _ENDPOINTS))
    file.write_text(intended.replace("127.0.0.1", "127.0.0.9"))
    await stage.healed("the file of Envoy is restored", lambda: reads(file, intended))


async def _index_dropped(stage: ShakespeareStage) -> None:
    mark = stage.last_push()
    await stage.sql("DROP INDEX lines_by_play")
    await stage.healed("the index is restored", lambda: bool(stage.pushes("database/schema", after=mark)))
    found = await stage.sql("SELECT count(*) FROM pg_indexes WHERE indexname = 'lines_by_play'")
    stage.check(found.strip() == "1", "the database confirms it")


async def _envoy_killed(stage: ShakespeareStage) -> None:
    bootstrap = stage.workspace / "production/frontend/global/envoy/bootstrap.json"
    [process] = _running(str(bootstrap))
    stage.kill(process, signal.SIGKILL)

    async def back() -> bool:
        return _running(str(bootstrap)) not in ([], [process]) and await _answers(stage)

    await stage.healed("the global Envoy is back and serving", back)


async def _database_stopped(stage: ShakespeareStage) -> None:
    lock = stage.production / "postgres" / "postmaster.pid"
    process = int(lock.read_text().split()[0])
    stage.kill(process, signal.SIGINT)

    async def back() -> bool:
        try:
            return int(lock.read_text().split()[0]) != process and await _answers(stage)
        except (OSError, ValueError, IndexError):
            return False  # the file is missing or incomplete while it starts

    await stage.healed("PostgreSQL is back, and requests succeed again", back)


async def _answers(stage: ShakespeareStage) -> bool:
    try:
        return (await ask(stage.port)).status == 200
    except OSError:
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


SPEAKER = ("(^      )line: .*", r"\g<0>\n\1speaker: {type: text}")


async def from_nothing(stage: ShakespeareStage) -> None:
    """From nothing to two clusters that serve."""
    stage.narrator.say(
        "Two files declare everything: frontend.yaml (version, clusters, replicas) and schema.yaml. A "
        "service model derives the rest: a job, an Envoy and a balancer for each cluster, a global Envoy "
        "and balancer, and PostgreSQL with its tables and rows. None of this exists here yet."
    )
    commit = await stage.make_service()
    began = await stage.start()
    stage.show_page()
    await stage.published(commit)
    await stage.converged()
    await stage.until("eu serves", lambda: stage.serving("eu", 3, "v1"))
    await stage.until("us serves", lambda: stage.serving("us", 2, "v1"))
    seconds = stage.clock.monotonic() - began
    await stage.lehr("get", "assets")
    stage.check(True, f"both clusters serve, {seconds:.1f} s after `lehr run` was started")
    audience = stage.seated()
    clusters = {"eu", "us"}
    await stage.until("both clusters answer", lambda: {where for where, _ in audience.answered} == clusters)
    assert audience.newest is not None
    stage.narrator.say(f"An audience starts to send requests, without end: {audience.newest.body.strip()}")
    stage.check(audience.lost == 0, "its requests reach both clusters, and none was lost")


async def shrink_and_grow(stage: ShakespeareStage) -> None:
    """Fewer replicas and back: the order follows the change."""
    stage.narrator.say(
        "`eu` goes from 3 replicas to 1. The balancer depends on the job, but is pushed first: it must stop "
        "sending requests before replicas end. Back to 3, the job is pushed first."
    )
    job, balancer = "frontend/eu/job", "frontend/eu/balancer"
    async with stage.nothing_lost():
        mark = stage.last_push()
        await stage.commit("One replica is enough for eu", stage.replicas("eu", 1))
        await stage.until("one replica is left", lambda: stage.serving("eu", 1))
        await stage.converged()
        stage.in_order(balancer, job, mark, "the balancer was pushed before the job")
        await stage.lehr("why", job)
        mark = stage.last_push()
        await stage.commit("Three again", stage.replicas("eu", 3))
        await stage.converged()
        await stage.until("eu serves", lambda: stage.serving("eu", 3))
        stage.in_order(job, balancer, mark, "the job was pushed before the balancer")
        await stage.lehr("why", balancer)


async def new_version(stage: ShakespeareStage) -> None:
    """A version that needs a new column, and back."""
    stage.narrator.say(
        "v2 shows the speaker, from a column that does not exist yet. One commit changes both. v2 needs "
        "version 2 of the schema, so none of its replicas starts before the column exists."
    )
    job = "frontend/eu/job"
    schema = stage.edit(SCHEMA, (r"^version: \d+", "version: 2"), SPEAKER)
    program = stage.edit(FRONTEND, (r"^version: \w+", "version: v2"), (r"^schema: \d+", "schema: 2"))
    async with stage.nothing_lost():
        mark = stage.last_push()
        await stage.commit("v2, and the column that it reads", {**schema, **program})
        await stage.until("eu serves v2", lambda: stage.serving("eu", 3, "v2"))
        await stage.converged()
        stage.in_order("database/schema", job, mark, "the schema was pushed before the job")
        await stage.lehr("why", job)
        stage.narrator.say(
            "v2 is a disappointment. Going back needs no commit and does not touch the schema."
        )
        mark = stage.last_push()
        reason = "the audience does not care who speaks"
        await stage.lehr("rollback", "frontend/*", "--reason", reason)
        await stage.until("eu serves v1", lambda: stage.serving("eu", 3, "v1"))
        await stage.converged()
        stage.check(not stage.pushes("database/schema", after=mark), "v1 serves, and the schema is unchanged")
        stage.narrator.say("Now git declares v1 on the newer schema as well. Then the pin can be lifted.")
        program = stage.edit(FRONTEND, (r"^version: \w+", "version: v1"))
        await stage.commit("Back to v1", program)
        mark = stage.last_push()
        await stage.lehr("unpin", "frontend/*")
        await stage.converged()
        stage.check(await stage.serving("eu", 3, "v1"), "v1 keeps serving")


async def new_cluster(stage: ShakespeareStage) -> None:
    """One more cluster with one line."""
    stage.narrator.say(
        "`asia` is one more line. The global balancer only sends requests there once it serves."
    )
    ports = stage.number(8450)
    audience = stage.seated()
    async with stage.nothing_lost():
        mark = stage.last_push()
        began = stage.clock.monotonic()
        line = f"  asia: {{replicas: 2, ports: {ports}}}"
        await stage.commit("asia", stage.edit(FRONTEND, (r"^  eu: .*", rf"\g<0>\n{line}")))
        await stage.until("asia answers", lambda: any(where == "asia" for where, _ in audience.answered))
        seconds = stage.clock.monotonic() - began
        await stage.converged()
        stage.check(True, f"asia serves, {seconds:.1f} s after the commit")
        over = "frontend/global/balancer"
        stage.in_order(
            "frontend/asia/job", "frontend/asia/balancer", mark, "its job was pushed first, then its balancer"
        )
        stage.in_order("frontend/asia/balancer", over, mark, "then the global balancer")
        await stage.lehr("why", over)
