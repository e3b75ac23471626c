"""What decorators of generators over assets select."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lehr.model.selector import Selector, selector_of
from lehr.sdk.generator import AssetView, Declaration, Reads, declaration, for_all_assets, for_each_asset


def declared(*arguments: Any, **options: Any) -> Declaration:
    @for_each_asset(*arguments, **options)
    def generator(asset: AssetView) -> Iterator[Any]:
        yield from ()

    found = declaration(generator)
    assert found is not None
    return found


def test_a_type_alone_is_told_by_its_name() -> None:
    assert declared("a.B", makes="a.C") == Declaration(Reads.ASSET, "a.B", ("a.C",))
    assert selector_of("a.B") == Selector(types=("a.B",))


@pytest.mark.parametrize(
    ("arguments", "options", "text", "selector"),
    [
        (("a.*",), {}, "type=a.*", Selector(types=("a.*",))),
        ((["a.B", "a.C"],), {}, "type=a.B,type=a.C", Selector(types=("a.B", "a.C"))),
        ((), {"ids": "web/*"}, "id=web/*", Selector(ids=("web/*",))),
        (
            ("a.B",),
            {"labels": {"tier": "web"}, "ids": ["x", "y"]},
            "id=x,id=y,type=a.B,label:tier=web",
            Selector(ids=("x", "y"), types=("a.B",), labels={"tier": "web"}),
        ),
    ],
)
def test_anything_else_is_told_as_a_selector(
    arguments: tuple[Any, ...], options: dict[str, Any], text: str, selector: Selector
) -> None:
    found = declared(*arguments, **options)
    assert (found.of, selector_of(found.of)) == (text, selector)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((), {}),
        ((), {"labels": {}}),
        ((5,), {}),
        ((["a.B", 5],), {}),
        ((), {"labels": {"tier": 5}}),
        ((), {"labels": {"tier": "web,id=x"}}),
        ((), {"ids": "a,b"}),
    ],
)
def test_what_is_no_selector_is_refused_where_it_is_written(
    arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    for decorator in (for_each_asset, for_all_assets):
        with pytest.raises((ValueError, TypeError)):
            decorator(*arguments, **options)
