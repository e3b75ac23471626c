"""The hello example: a page, a small web program in two replicas, a file and a command."""

from __future__ import annotations

from lehr.demo.example import Example, Suggestion
from lehr.demo.hello import ending_scenes, guarding_scenes, serving_scenes
from lehr.demo.hello.stage import SITE, HelloStage

SCENES = (
    serving_scenes.from_nothing,
    serving_scenes.change,
    serving_scenes.damage,
    guarding_scenes.mistakes,
    guarding_scenes.freeze,
    guarding_scenes.why,
    ending_scenes.turndown,
    ending_scenes.crash,
)


def things_to_try(stage: HelloStage) -> list[Suggestion]:
    """Things to try after the last scene."""
    return [
        Suggestion(
            "Change something, and see what becomes of it:",
            (
                ("sed", "-i", "s/greeting: .*/greeting: Hello, you/", SITE),
                ("git", "commit", "--all", "--message", "Greet you"),
                ("curl", f"http://127.0.0.1:{stage.port}/"),
                ("lehr", "why", "hello/web"),
            ),
        )
    ]


EXAMPLE = Example(HelloStage, SCENES, things_to_try)
