"""Reports how far a run has come, each step once."""

from __future__ import annotations

from lehr.plugins.workflow.engines import RunProgress
from lehr.plugins.workflow.outcomes import shortened
from lehr.sdk.plugin import Push
from lehr.sdk.secrets import Hidden


class Reporter:
    """Reports to users who watch a push.

    Args:
        hidden: hides secrets in the texts of the engine.
    """

    def __init__(self, push: Push, hidden: Hidden) -> None:
        self._push = push
        self._hidden = hidden
        self._steps = 0
        self._now = ""

    def report(self, progress: RunProgress) -> None:
        """Report the steps that have ended since the last call, and what the run does now."""
        for step in progress.steps[self._steps :]:
            self._push.progress(shortened(step, self._hidden))
        self._steps = max(self._steps, len(progress.steps))
        self.now(progress.now)

    def now(self, text: str) -> None:
        """Report `text`, unless it was the last one."""
        line = shortened(text, self._hidden)
        if line and line != self._now:
            self._push.progress(line)
        self._now = line
