"""Of several pins the last one counts, however many assets each selects."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lehr.model.control import Control, ControlKind
from lehr.model.pinning import Holds, pin
from lehr.model.selector import Selector
from tests.unit.enforce.turns import ASSET, control

ONE = replace(control(ControlKind.PIN, "c1"), incarnation=2)
ALL = replace(control(ControlKind.PIN, "c2"), incarnation=3, selector=Selector(all=True))


@pytest.mark.parametrize(("given", "content"), [((ONE, ALL), 3), ((ALL, ONE), 2)])
def test_the_last_pin_counts_whatever_else_it_selects(given: tuple[Control, ...], content: int) -> None:
    assert pin(ASSET, 5, Holds(list(given))).content == content
