"""What a filter finds in a store, page by page, is what the library of CEL says of each asset alone.

Three are compared: the store's indexes with the filter behind them, the filter asked of every asset, and the
library, which knows of no index and no closure. Expressions are generated over all that there is of CEL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, example, find, given, settings
from hypothesis import strategies as st

from lehr.base.digest import Digest
from lehr.cel import NoAnswerError, compile_expression, compile_question
from lehr.cel.closures import _FUNCTIONS
from lehr.cel.google import compile_text
from lehr.cel.tree import Call, Fold, Node, Select, walk
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import Candidate, SourceRevision
from lehr.model.writes import Publish
from lehr.query.asset_pages import Wanted, page
from lehr.query.filters import VARIABLES, Filter
from lehr.query.partition_view import Reading
from lehr.store.sqlite import SqliteStore

PARTITION = Partition("shop")

PAYLOADS: dict[str, Any] = {
    "a": {"n": 1, "f": 0.5, "s": "x", "l": [1, 2], "m": {"a": 1}, "t": "2026-03-29T01:30:00Z", "b": True},
    "a/b": {"n": -2, "f": 1.0, "s": "12", "l": ["x", "a/b"], "m": {"x": {"n": 1}}, "b": False},
    "a/b/c": {"n": 0, "s": "", "l": [], "m": {}, "t": "no time"},
    "a-b": {"n": "1", "f": 1, "s": 7, "l": [{"n": 1}, {"n": 2}], "m": {"a": [1]}, "class": 1},
    "a0": {"n": None, "f": None, "s": None, "l": None, "m": None, "t": None, "b": None},
    "b": {"n": 2**63 - 1, "f": 1e300, "s": "Zürich 😀", "l": [[1], [2, 3]], "t": "2027-01-01T00:00:00+02:00"},
    "bb/a": {},
    "c": {"a-b": 1, "a.b": {"c": 2}, "size": 3, "type": "t.A", "id": "a", "payload": {"n": 1}},
    "c/a": [1, 2, 3],
    "c/b": "text",
    "c/c": None,
    "d": {"n": 1.0, "f": -0.0, "s": "a/b", "l": [1.0, 1, True, None, "1"], "m": {"a": 1, "b": 2.0}},
}
"""By id: of each field those that have it, those that have something else in it, and those that lack it."""

ADDONS: dict[str, Any] = {
    "a": {"t.Addon": {"k": 1, "l": [1]}},
    "a/b": {"t.Addon": {"k": "x"}, "lehr.Labels": {"labels": {"env": "x"}}},
    "c": {"lehr.Labels": {"labels": {"env": "production", "team": "a"}}},
    "c/a": {"t.Addon": {}},
}
TYPES = ("t.A", "t.B", "t.C")


def made(id: str, number: int) -> Asset:
    return make_asset(AssetId(id), TYPES[number % len(TYPES)], PAYLOADS[id], ADDONS.get(id, {}))


NOW = [made(id, number) for number, id in enumerate(sorted(PAYLOADS))]
THEN = [made(asset.id, number + 1) for number, asset in enumerate(NOW) if number not in (2, 5, 7)]
"""What was there an incarnation before: less, and of other types."""


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reading]:
    folder: Path = tmp_path_factory.mktemp("filters")
    store = SqliteStore(folder / "state.sqlite")
    revision = (SourceRevision("git:/intent#main", "c0ffee"),)
    for base, assets in enumerate((THEN, NOW)):
        candidate = Candidate(PARTITION, base, revision, Digest("generators"), tuple(assets), ())
        store.commit([Publish(candidate, {}, (), float(base), {})])
    yield Reading(store, PARTITION, 0.0, lambda type: False)
    store.close()


# --- expressions, by what they mostly answer -------------------------------------------------

IDS = st.sampled_from([*PAYLOADS, "", "zz", "a/"])
TYPE_NAMES = st.sampled_from([*TYPES, "t.None"])
FIELDS = st.sampled_from(["n", "f", "s", "l", "m", "t", "b", "class", "none", "size", "type", "id"])
LITERALS = ("0", "1", "-3", "9223372036854775807", "0.5", "1.0", "-0.0")
NUMBERS = st.sampled_from([*LITERALS, "payload.n", "payload.f", "payload.m.a"])
TEXTS = st.one_of(
    st.sampled_from(["id", "type", "payload.s", "payload.t", "payload.none", "addons['t.Addon'].k", "'x'"]),
    IDS.map(repr),
    TYPE_NAMES.map(repr),
)
LISTS = st.sampled_from(["payload.l", "[1, 2]", "[id, type]", "payload.m.a", "[]", "[payload.n, payload.s]"])
MAPS = st.sampled_from(["payload", "payload.m", "addons", "addons['lehr.Labels'].labels", "{'a': payload.n}"])
OTHERS = st.sampled_from(
    ["null", "payload.`a-b`", "payload['a.b'].c", "payload.l[-1]", "payload.l[0].n", "payload.b", "1u"]
)
ABOUT_HEADS = st.one_of(
    st.builds("id == {!r}".format, IDS),
    st.builds("{!r} == id".format, IDS),
    st.builds("id != {!r}".format, IDS),
    st.builds("id.startsWith({!r})".format, st.sampled_from(["a", "a/", "b", "c/", "", "zz", "a/b"])),
    st.builds("id in [{!r}, {!r}]".format, IDS, IDS),
    st.builds("type == {!r}".format, TYPE_NAMES),
    st.builds("type in [{!r}, {!r}]".format, TYPE_NAMES, TYPE_NAMES),
    st.builds("type in [{!r}, payload.s]".format, TYPE_NAMES),
    st.sampled_from(
        ["id in []", "type == id", "type in payload.l", "id == payload.id", "type == payload.type"]
    ),
)
PATTERNS = st.sampled_from(["^a", "a/?b$", "[0-9]+", "(", "^$", "."])
PARTS = st.sampled_from(["getFullYear", "getMonth", "getDate", "getDayOfWeek", "getDayOfYear", "getHours"])
TIMES = st.sampled_from(["timestamp(payload.t)", "timestamp('2026-03-29T01:30:00Z')", "timestamp(payload.s)"])
VALUES = st.one_of(NUMBERS, TEXTS, LISTS, MAPS, OTHERS)
# Variables of macros hide those of filters, but for the macro that they are of.
ITEMS = st.sampled_from(["x", "y", "id", "type", "payload"])


@st.composite
def macros(draw: st.DrawFn, name: str, condition: st.SearchStrategy[str]) -> str:
    """A macro over a list or map; its condition speaks of its item, too."""
    item, over = draw(ITEMS), draw(st.one_of(LISTS, MAPS, st.just("dyn(payload.s)")))
    of_item = st.one_of(
        st.builds("{} == {}".format, st.just(item), VALUES),
        st.builds("{} > {}".format, st.just(item), NUMBERS),
        st.sampled_from([f"{item}.n == 1", f"dyn({item}) in payload.m", f"dyn({item}).size() > 1"]),
        st.sampled_from([f"has(dyn({item}).n)", f"dyn({item}).exists(z, z == 1 || z == {item})"]),
    )
    joined = draw(st.sampled_from(["{}", "!({})", "{} || {}", "{} && {}"]))
    return f"{over}.{name}({item}, {joined.format(draw(of_item), draw(st.one_of(of_item, condition)))})"


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Larger conditions."""
    chosen = st.builds("({} ? {} : {})".format, inner, inner, inner)
    return st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("!({})".format, inner),
        chosen,
        *(macros(name, inner) for name in ("all", "exists", "exists_one")),
        macros("filter", inner).map("{}.size() > 0".format),
        st.builds("{}.map(x, [x, dyn({})]) != []".format, LISTS, inner),
        st.builds("{}.map(x, {}, dyn(x) == 1) == [true]".format, st.one_of(LISTS, MAPS), inner),
    )


def compared(values: st.SearchStrategy[str], *operators: str) -> st.SearchStrategy[str]:
    """Two values; of types that are known before only the same go together, so one is of any type."""
    return st.builds("dyn({}) {} {}".format, values, st.sampled_from(operators), values)


ARITHMETIC = st.sampled_from(["+", "-", "*", "/", "%"])
TEXT_FUNCTIONS = st.sampled_from(["contains", "startsWith", "endsWith"])
CONVERSIONS = st.sampled_from(["int", "double", "string", "bool", "dyn"])
KINDS = st.sampled_from(["int", "string", "list", "map", "bool"])

LEAVES = st.one_of(
    ABOUT_HEADS,
    compared(VALUES, "==", "!="),
    compared(st.one_of(NUMBERS, TEXTS), "<", "<=", ">", ">="),
    compared(VALUES, "in"),
    st.builds("dyn({}) {} {} == {}".format, NUMBERS, ARITHMETIC, NUMBERS, NUMBERS),
    st.builds("dyn({0}) + {1} == {1}".format, st.one_of(TEXTS, LISTS), st.one_of(TEXTS, LISTS)),
    st.builds("-(dyn({})) < {}".format, NUMBERS, NUMBERS),
    st.builds("size(dyn({})) > {}".format, VALUES, NUMBERS),
    st.builds("has(payload.{})".format, FIELDS),
    st.builds("has(payload.m.{}) == has(payload.{})".format, FIELDS, FIELDS),
    st.builds("payload.{}".format, FIELDS),
    st.builds("payload[{}] == {}".format, st.sampled_from(["'n'", "0", "id", "1.0", "true"]), VALUES),
    st.sampled_from(["'t.Addon' in addons", "addons['t.Addon'].k == 1", "has(addons.none)"]),
    st.builds("dyn({}).{}({})".format, TEXTS, TEXT_FUNCTIONS, TEXTS),
    st.builds("dyn({}).matches('{}')".format, TEXTS, PATTERNS),
    st.builds("{}.{}() == {}".format, TIMES, PARTS, st.sampled_from(["0", "2", "29", "2026"])),
    st.builds("{} - {} < duration('1h')".format, TIMES, TIMES),
    st.builds("{}({}) == {}".format, CONVERSIONS, NUMBERS, VALUES),
    st.builds("type({}) == {}".format, VALUES, KINDS),
    st.sampled_from(["true", "false", "null", "'x'", "1"]),
)
CONDITIONS = st.recursive(LEAVES, grown, max_leaves=8)
FILTERS = st.one_of(
    LEAVES,
    CONDITIONS,
    st.builds("{} && ({})".format, ABOUT_HEADS, CONDITIONS),
    st.builds("({} || {}) && ({})".format, ABOUT_HEADS, ABOUT_HEADS, CONDITIONS),
    st.builds("({}) || {} && {}".format, CONDITIONS, ABOUT_HEADS, ABOUT_HEADS),
)


# --- and what is compared ------------------------------------------------------------------


def of_library(text: str, assets: list[Asset]) -> list[Any]:
    """What the library answers for each; None where that is no truth value, or there is no answer."""
    expression = compile_text(text, VARIABLES)

    def answer(asset: Asset) -> Any:
        document: dict[str, Any] = asset.document()
        try:
            found = expression.answer({name: document[name] for name in VARIABLES})
        except NoAnswerError:
            return None
        return found if isinstance(found, bool) else None

    return [answer(asset) for asset in assets]


def found_in(reading: Reading, text: str, incarnation: str, limit: int) -> list[str]:
    """Ids of what all pages have."""
    ids: list[str] = []
    cursor = ""
    while True:
        wanted = Wanted(Filter(text))
        got = page(reading, wanted, incarnation=incarnation, cursor=cursor, limit=limit)
        ids += [asset.id for asset in got.assets]
        cursor = got.cursor
        if not cursor:
            return ids


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow])
@given(FILTERS, st.sampled_from([1, 3, 100]))
@example("payload.l.exists(id, id == 'a/b')", 100)
@example("[{'n': 1}].exists(payload, payload.n == 1)", 100)
@example("id.startsWith('a') && !(id.startsWith('a/'))", 1)
@example("(id == 'a' || payload.n == 1) && type in ['t.A', 't.B']", 3)
@example("payload.none == 1 || id == 'a'", 100)
@example("(payload.b ? 1 : 2)", 100)
@example("has(payload.n) ? payload.n == 1 : id == 'c'", 100)
@example("type in ['t.A', payload.s] || id in []", 3)
def test_a_store_a_filter_and_the_library_find_the_same(reading: Reading, text: str, limit: int) -> None:
    if re.search(r"\.(filter|map)\(", text) and re.search(r"timestamp|type\(|1u", text):
        return  # of maps there is no answer, where the library has another each time
    try:
        compile_question(text, VARIABLES)
    except ValueError as refused:
        event("refused: " + re.sub(r"'[^']*'|\d+", "", str(refused))[:50])
        if "ought to be true or false" in str(refused):
            assert set(of_library(text, NOW)) == {None}, text
        return
    event("by an index" if Filter(text).bounds.told() else "everything is looked at")
    event("fast" if Filter(text).fast else "asked of the library")
    for incarnation, assets in (("1", THEN), ("2", NOW)):
        answers = of_library(text, assets)
        event(f"{'some' if True in answers else 'none'} of incarnation {incarnation}")
        alone = Filter(text)
        assert [alone.matches(asset) for asset in assets] == [answer is True for answer in answers], text
        assert alone.unanswered[1] == answers.count(None), text
        expected = [asset.id for asset, answer in zip(assets, answers, strict=True) if answer]
        assert found_in(reading, text, incarnation, limit) == expected, text


OF_LIBRARY = ("timestamp", "duration", "getFullYear", "type")
SEARCHING = settings(max_examples=5000, database=None, derandomize=True, phases=[Phase.generate])


@pytest.mark.parametrize("name", [*sorted({name for name, _ in _FUNCTIONS}), *OF_LIBRARY, "has", "fold"])
def test_all_that_there_is_is_generated(name: str) -> None:
    def has_it(text: str) -> bool:
        try:
            tree = compile_expression(text, VARIABLES).tree
            return tree is not None and name in called(tree)
        except ValueError:
            return False

    assert find(st.one_of(LEAVES, grown(LEAVES)), has_it, settings=SEARCHING)


def called(tree: Node) -> Iterator[str]:
    """Names of what an expression calls."""
    for part in walk(tree):
        if isinstance(part, Call):
            yield part.function
        elif isinstance(part, Fold):
            yield "fold"
        elif isinstance(part, Select) and part.test:
            yield "has"
