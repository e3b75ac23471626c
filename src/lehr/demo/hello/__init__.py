"""The hello example: a page, a small web program in two replicas, a file and a command."""

from __future__ import annotations

from lehr.demo.example import Example, Suggestion
from lehr.demo.hello import scenes
from lehr.demo.hello.stage import SITE, HelloStage

SCENES = (
    scenes.from_nothing,
    scenes.change,
    scenes.damage,
    scenes.mistakes,
    scenes.freeze,
    scenes.why,
    scenes.turndown,
    scenes.crash,
)


def things_to_try(stage: HelloStage) -> list[Suggestion]:
    """Things to try after the last scene."""
    return [
        Suggestion(
            "Change something, and watch the effect:",
            (
                ("sed", "-i", "s/greeting: .*/greeting: Hello, you/", SITE),
                ("git", "commit", "--all", "--message", "Greet you"),
                ("curl", f"http://127.0.0.1:{stage.port}/"),
                ("lehr", "why", "hello/web"),
            ),
        )
    ]


EXAMPLE = Example(HelloStage, SCENES, things_to_try)
