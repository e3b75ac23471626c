"""`lehr.model.control_index`: the same answers as matching every control, in the same order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lehr.model.asset import AssetId, Partition, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.control_index import ControlIndex
from lehr.model.selector import Selector

IDS = st.text("ab/", min_size=1, max_size=4)
PATTERNS = st.lists(
    st.one_of(IDS, IDS.map("{}*".format), st.text("ab*?[]", min_size=1, max_size=4)), max_size=3
)
SELECTORS = st.builds(
    lambda ids, types: Selector(ids=tuple(ids), types=types) if ids or types else Selector(all=True),
    PATTERNS,
    st.sampled_from([(), ("x",), ("other",)]),
)


def control(number: int, selector: Selector, expires_at: float | None = None) -> Control:
    return Control(
        id=f"c{number}",
        kind=ControlKind.PIN,
        partition=Partition("p"),
        selector=selector,
        reason="r",
        actor="somebody",
        at=0.0,
        expires_at=expires_at,
    )


@given(st.lists(st.tuples(SELECTORS, st.sampled_from([None, 5.0, 20.0])), max_size=12), IDS)
def test_the_index_loses_no_control_that_selects_an_asset(
    given: list[tuple[Selector, float | None]], id: str
) -> None:
    controls = [control(number, selector, end) for number, (selector, end) in enumerate(given)]
    asset = make_asset(AssetId(id), "x", None, {})
    found = ControlIndex(controls).over(asset.id, 10.0)
    assert [c for c in found if c.selector.matches(asset)] == [
        c for c in controls if c.is_active(10.0) and c.selector.matches(asset)
    ]
    assert all(c.selector.may_name(asset.id) or set("*?[") & set("".join(c.selector.ids)) for c in found)


def test_a_thousand_pins_of_other_assets_are_not_looked_at() -> None:
    pins = [control(number, Selector(ids=(f"web-{number}",))) for number in range(1000)]
    racks = [control(number, Selector(ids=(f"rack-{number}/*",))) for number in range(1000, 2000)]
    index = ControlIndex([*pins, *racks])
    assert [c.id for c in index.over(AssetId("web-7"), 0.0)] == ["c7"]
    assert [c.id for c in index.over(AssetId("rack-1007/disk"), 0.0)] == ["c1007"]
    assert not index.over(AssetId("db"), 0.0)
