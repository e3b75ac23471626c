"""The Shakespeare example: a service in clusters behind Envoy, with a PostgreSQL, and an audience."""

from __future__ import annotations

from lehr.cli.demo.example import Example, Suggestion
from lehr.cli.demo.shakespeare import damage, ending, guarding, serving
from lehr.cli.demo.shakespeare.stage import FRONTEND, ShakespeareStage

SCENES = (
    serving.from_nothing,
    serving.shrink_and_grow,
    serving.new_version,
    serving.new_cluster,
    damage.damage,
    guarding.mistakes,
    ending.turndown,
    ending.drop_column,
    guarding.saturday,
    ending.crash,
)


def things_to_try(stage: ShakespeareStage) -> list[Suggestion]:
    """For whoever has seen the last scene."""
    return [
        Suggestion(
            "Change something, and see what becomes of it:",
            (
                ("sed", "-i", "s/THEATRE: .*/THEATRE: Drury Lane/", FRONTEND),
                ("git", "commit", "--all", "--message", "We have moved"),
                ("curl", f"http://127.0.0.1:{stage.port}/"),
                ("lehr", "why", "frontend/eu/job"),
            ),
        ),
        Suggestion(
            "v3 starts, says that it is healthy, and answers three of ten requests with an error:",
            (
                ("sed", "-i", "s/^version: .*/version: v3/", FRONTEND),
                ("git", "commit", "--all", "--message", "v3"),
            ),
        ),
        Suggestion(
            "The errors show below, here as lost requests. Back, first without git, then for good:",
            (
                ("lehr", "rollback", "frontend/*", "--reason", "v3 forgets its lines"),
                ("git", "revert", "--no-edit", "HEAD"),
                ("lehr", "unpin", "frontend/*"),
            ),
        ),
    ]


EXAMPLE = Example(ShakespeareStage, SCENES, things_to_try)
