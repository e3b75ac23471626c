"""What evidence makes of a rollout."""

from __future__ import annotations

import pytest

from lehr.model.asset import AssetId
from lehr.model.evidence import (
    Begun,
    Commanded,
    Looked,
    RolloutCommand,
    UnitLook,
    Updated,
    Validated,
    Withdrawn,
)
from tests.unit.rollouts.test_plan import course_of

UPDATED = Updated(("a", "b"), {AssetId("a"): 1, AssetId("b"): 1})
LOOKED = Looked({"a": UnitLook(True, 12.5, 20.0, 0, ""), "b": UnitLook(True, 3.0, 20.0, 0, "")})


@pytest.mark.parametrize(
    "proof",
    [Validated(("a", "b")), Commanded(RolloutCommand.PROMOTE, "ana", "seen")],
    ids=["good", "promoted"],
)
def test_what_is_withdrawn_begins_anew(proof: Validated | Commanded) -> None:
    facts = Begun(2), UPDATED, LOOKED, proof, Withdrawn(("a",)), Updated(("a",), {AssetId("a"): 1})
    running = course_of(*facts).running
    assert running is not None
    assert set(running.updated) == {"a", "b"}
    assert set(running.looks) == {"b"}
    assert set(running.validated) == {"b"}
    assert running.promoted <= {"b"}


def test_what_is_released_again_goes_back_to_what_it_had_then() -> None:
    facts = (
        Begun(3),
        Updated(("a",), {AssetId("a"): 1}),
        Withdrawn(("a",)),
        Updated(("a",), {AssetId("a"): 2}),
    )
    running = course_of(*facts).running
    assert running is not None
    assert running.before == {"a": 2}
