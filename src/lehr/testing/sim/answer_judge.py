"""Judges the answers that people get to their commands: each promise was kept when it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lehr.control.messages import Approve, Controlling, Lift
from lehr.model.control import Control
from lehr.model.selector import parse_selector
from lehr.testing.sim.source import NAME
from lehr.testing.sim.witnessed_state import WitnessedState, is_active


class AnswerJudge:
    """Invariants I4, I7 and I12 of commands that were carried out."""

    def __init__(self, broken: Callable[[str, str], None], state: WitnessedState) -> None:
        """`broken` is called with the rule and what breaks it."""
        self._broken = broken
        self._state = state

    def lifted(self, request: Lift, before: Iterable[Control], now: float) -> None:
        """A person got the answer that controls are lifted: those that were asked for, and no others."""
        asked = parse_selector(request.selector)
        for control in before:
            if not is_active(control, now) or self._state.jumped:
                continue
            plain = not (control.selector.all or asked.types or asked.labels)
            plain = plain and not (control.selector.types or control.selector.labels)
            covered = asked.all or control.selector == asked
            covered = covered or (plain and set(control.selector.ids) <= set(asked.ids))
            meant = str(control.kind) == request.kind and covered
            if meant and control.id in self._state.controls:
                self._broken("I12", f"{control.kind} of {control.selector} counts as lifted, and is active")
            if not meant and control.id not in self._state.controls:
                self._broken("I12", f"{control.kind} of {control.selector} is gone, and was not lifted")

    def refreshed(self, sources: Iterable[dict[str, str]], since: Sequence[str]) -> None:
        """A person got the answer to a refresh: it is about what there was when they asked, or later."""
        for source in sources:
            if source["source"] == NAME and source["revision"] not in since:
                self._broken("I7", "a refresh is answered by a pass over an older revision")

    def promised(self, request: Controlling, id: str) -> None:
        """A person was answered that control `id` is active: it is durable, and what was asked for (I12)."""
        control = self._state.controls.get(id)
        if control is None:
            self._broken("I12", f"control {id} is reported as active, and is not written")
        elif isinstance(request, Approve) and control.diff_digest != request.diff_digest:
            self._broken("I4", f"approval {id} is for another diff than the one that was seen")
