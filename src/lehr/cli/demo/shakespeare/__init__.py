"""The Shakespeare example: a service in clusters behind Envoy, with a PostgreSQL, and an audience."""

from __future__ import annotations

from lehr.cli.demo.example import Example
from lehr.cli.demo.shakespeare import damage, ending, guarding, serving
from lehr.cli.demo.shakespeare.stage import ShakespeareStage

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


def things_to_try(stage: ShakespeareStage) -> list[tuple[str, ...]]:
    """Commands for whoever has seen the last scene."""
    return [
        ("curl", f"http://127.0.0.1:{stage.port}/"),
        ("sed", "-i", "s/THEATRE: .*/THEATRE: Drury Lane/", "frontend.yaml"),
        ("git", "commit", "--all", "--message", "We have moved"),
        ("lehr", "status"),
        ("lehr", "why", "frontend/eu/job"),
    ]


EXAMPLE = Example(ShakespeareStage, SCENES, things_to_try)
