"""The outcome of a push, from the end of the run that it waited for. Pure."""

from __future__ import annotations

from lehr.base.text import one_line
from lehr.model.operation import DONE, Outcome, Result
from lehr.plugins.workflow.engines import Run, RunState
from lehr.plugins.workflow.payload import Workflow
from lehr.sdk.secrets import Hidden

MOST_MESSAGE = 500

SUPERSEDED = Outcome(Result.FAILED, "superseded")


def outcome_of(run: Run, workflow: Workflow, name: str, hidden: Hidden, *, asked: bool = False) -> Outcome:
    """The outcome of a push whose run has ended.

    Args:
        name: of the workflow that was started.
        asked: the run was asked to end, since newer content has overtaken it.
    """
    if run.state is RunState.COMPLETED:
        return DONE
    if asked:
        return SUPERSEDED
    if run.state in (RunState.CANCELLED, RunState.TERMINATED):
        ended = f"{name} was {run.state.value} in its engine ({run.id})"
        return Outcome(Result.STALLED, f"{ended}: Lehr does not start it again without being asked")
    if run.state is RunState.TIMED_OUT:
        # Not started again automatically: its last step may continue, since nothing has ended that.
        what = f"{name} did not end within {workflow.timeout_seconds:g} seconds ({run.id})"
        return Outcome(Result.STALLED, f"{what}: make sure that its last step has ended")
    what = f"{name} failed ({run.id}): {shortened(run.message, hidden) or 'no message'}"
    stalls = run.final or workflow.when_failed == "stall"
    return Outcome(Result.STALLED if stalls else Result.FAILED, what)


def shortened(text: str, hidden: Hidden) -> str:
    """A text of an engine on one short line, without known secrets."""
    # Hidden first: a secret that is cut in two is not found.
    line = one_line(hidden.shown(text[: 100 * MOST_MESSAGE]))
    return line if len(line) <= MOST_MESSAGE else f"{line[:MOST_MESSAGE]}..."
