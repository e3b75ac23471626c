"""Scenes 1 to 4: a service comes up, shrinks and grows, gets a new version, and a new cluster."""

from __future__ import annotations

from lehr.demo.shakespeare.stage import FRONTEND, SCHEMA, ShakespeareStage

_SPEAKER = ("(^      )line: .*", r"\g<0>\n\1speaker: {type: text}")


async def from_nothing(stage: ShakespeareStage) -> None:
    """From nothing to two clusters that serve."""
    stage.narrator.say(
        "Two files say what there is to be: frontend.yaml (version, clusters, replicas) and schema.yaml. A "
        "service model makes the rest of it: for each cluster a job, an Envoy and a balancer, and one more "
        "over them all; beside them a PostgreSQL, its tables and its rows. Nothing of that exists here yet."
    )
    commit = await stage.make_service()
    began = stage.clock.monotonic()
    stage.narrator.shell(("lehr", "run"))
    await stage.plane.start()
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
    stage.narrator.say(f"An audience begins to ask, and goes on for ever: {audience.newest.body.strip()}")
    stage.check(audience.lost == 0, "its requests come to both clusters, and none was lost")


async def shrink_and_grow(stage: ShakespeareStage) -> None:
    """Fewer replicas and back: the order follows the change."""
    stage.narrator.say(
        "`eu` goes from 3 replicas to 1. The balancer depends on the job, and yet it goes first: shrinking, "
        "it must stop sending requests to replicas that end. Back to 3, the job goes first."
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
        "v2 says who speaks, out of a column that does not exist yet. One commit has both. v2 needs "
        "version 2 of the schema, so no replica of it starts before the column is there."
    )
    job = "frontend/eu/job"
    schema = stage.edit(SCHEMA, (r"^version: \d+", "version: 2"), _SPEAKER)
    program = stage.edit(FRONTEND, (r"^version: \w+", "version: v2"), (r"^schema: \d+", "schema: 2"))
    async with stage.nothing_lost():
        mark = stage.last_push()
        await stage.commit("v2, and the column that it reads", {**schema, **program})
        await stage.until("eu serves v2", lambda: stage.serving("eu", 3, "v2"))
        await stage.converged()
        stage.in_order("database/schema", job, mark, "the schema was pushed before the job")
        await stage.lehr("why", job)
        stage.narrator.say("v2 is not liked. Going back needs neither git nor a reason to touch the schema.")
        mark = stage.last_push()
        reason = "the audience does not care who speaks"
        await stage.lehr("rollback", "frontend/*", "--reason", reason)
        await stage.until("eu serves v1", lambda: stage.serving("eu", 3, "v1"))
        await stage.converged()
        stage.check(not stage.pushes("database/schema", after=mark), "v1 serves, and the schema is as it was")
        stage.narrator.say("It becomes official: git says v1 too, on the newer schema. Then the pin can go.")
        program = stage.edit(FRONTEND, (r"^version: \w+", "version: v1"))
        await stage.commit("Back to v1", program)
        mark = stage.last_push()
        await stage.lehr("unpin", "frontend/*")
        await stage.converged()
        stage.check(await stage.serving("eu", 3, "v1"), "v1 goes on serving")


async def new_cluster(stage: ShakespeareStage) -> None:
    """One more cluster, by one line."""
    stage.narrator.say(
        "`asia` is one more line. The global balancer sends requests there when it serves, not before."
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
        stage.in_order("frontend/asia/balancer", over, mark, "and then the balancer over all clusters")
        await stage.lehr("why", over)
