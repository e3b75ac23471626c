"""The Shakespeare example: a service in clusters behind Envoy, with PostgreSQL and an audience."""

from __future__ import annotations

from lehr.demo.example import Example, Suggestion
from lehr.demo.shakespeare import ending_scenes, rollout_scenes, serving_scenes
from lehr.demo.shakespeare.stage import FRONTEND, ShakespeareStage

SCENES = (
    serving_scenes.from_nothing,
    serving_scenes.shrink_and_grow,
    serving_scenes.new_version,
    serving_scenes.new_cluster,
    serving_scenes.damage,
    rollout_scenes.canary,
    rollout_scenes.waves,
    ending_scenes.mistakes,
    ending_scenes.turndown,
    ending_scenes.drop_column,
    ending_scenes.saturday,
    ending_scenes.crash,
)


def things_to_try(stage: ShakespeareStage) -> list[Suggestion]:
    """Things to try after the last scene."""
    return [
        Suggestion(
            "Change something, and watch the effect:",
            (
                ("sed", "-i", "s/THEATRE: .*/THEATRE: Drury Lane/", FRONTEND),
                ("git", "commit", "--all", "--message", "We have moved"),
                ("curl", f"http://127.0.0.1:{stage.port}/"),
                ("lehr", "why", "frontend/eu/job"),
            ),
        ),
        Suggestion(
            "v3 starts, reports that it is healthy, and fails three of ten requests:",
            (
                ("sed", "-i", "s/^version: .*/version: v3/", FRONTEND),
                ("git", "commit", "--all", "--message", "v3"),
            ),
        ),
        Suggestion(
            "The errors appear below, here as lost requests. Roll back, first without git, then for good:",
            (
                ("lehr", "rollback", "frontend/*", "--reason", "v3 forgets its lines"),
                ("git", "revert", "--no-edit", "HEAD"),
                ("lehr", "unpin", "frontend/*"),
            ),
        ),
    ]


EXAMPLE = Example(ShakespeareStage, SCENES, things_to_try)
