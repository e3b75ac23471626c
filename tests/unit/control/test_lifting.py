"""Which controls are lifted by the assets that a person names."""

from __future__ import annotations

import pytest

from lehr.base.errors import LehrError
from lehr.control.commands import lifted
from lehr.control.messages import Lift
from lehr.model.asset import Partition
from lehr.model.control import Control, ControlKind
from lehr.model.selector import parse_selector


def paused(selector: str) -> Control:
    return Control(
        id="c1",
        kind=ControlKind.PAUSE,
        partition=Partition("shop"),
        selector=parse_selector(selector),
        reason="because",
        actor="ana",
        at=0.0,
    )


@pytest.mark.parametrize(
    ("of", "asked"),
    [("a", "a"), ("a,b", "a,b"), ("a,b", "b,a,c"), ("a", "all"), ("all", "all"), ("type=x.Y", "type=x.Y")],
)
def test_a_control_is_lifted_with_all_of_its_assets(of: str, asked: str) -> None:
    control = paused(of)
    assert lifted(Lift(kind="pause", selector=asked), [control]) == [control]


@pytest.mark.parametrize(("of", "asked"), [("a,b", "a"), ("all", "a"), ("type=x.Y", "a"), ("a", "type=x.Y")])
def test_a_control_is_not_lifted_by_a_part_of_its_assets(of: str, asked: str) -> None:
    with pytest.raises(LehrError) as caught:
        lifted(Lift(kind="pause", selector=asked), [paused(of)])
    assert caught.value.code == "CTL117"
