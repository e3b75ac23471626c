"""The hello example: a page, a small web program in two replicas, a file and a command."""

from __future__ import annotations

from lehr.cli.demo.example import Example, Suggestion
from lehr.cli.demo.hello import ending, guarding, serving
from lehr.cli.demo.hello.stage import SITE, HelloStage

SCENES = (
    serving.from_nothing,
    serving.change,
    serving.damage,
    guarding.mistakes,
    guarding.freeze,
    guarding.why,
    ending.turndown,
    ending.crash,
)


def things_to_try(stage: HelloStage) -> list[Suggestion]:
    """For whoever has seen the last scene."""
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
