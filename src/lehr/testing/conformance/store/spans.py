"""The rules of spans: some of an incarnation's assets, by their ids."""

from __future__ import annotations

from lehr.sdk.store import Span
from lehr.testing.conformance.holding import hold, named_plain
from lehr.testing.conformance.store.subject import PARTITION, RULE, THING, Rule, Subject, asset, published

_IDS = ("a", "a-b", "a/b", "a/b/c", "a0", "aB", "b", "c/a")

_SPANS = (
    Span(ids=frozenset(("a/b", "c/a", "none"))),
    Span(ids=frozenset()),
    Span(prefix="a/"),
    Span(prefix="none"),
    Span(prefix="é%_"),
    Span(after="a/b"),
    Span(after="zz"),
    Span(prefix="a", after="a-b"),
    Span(frozenset(("a", "a/b", "b")), "a", "a"),
)


@named_plain
def spans_select(subject: Subject) -> None:
    """Assets of a span, by id, with or without types, in the newest incarnation and in past ones."""
    with subject.opened() as store:
        made = [asset(id, type=RULE if id.endswith("b") else THING) for id in _IDS]
        published(store, 0, *made)
        published(store, 1, asset("a", "2"), removals=["c/a"])
        for sequence in (1, 2):
            everything = list(store.intent.assets(PARTITION, sequence))
            for span in _SPANS:
                for types in (None, [THING], [THING, RULE]):
                    found = [item.id for item in store.intent.assets(PARTITION, sequence, types, span)]
                    expected = [
                        item.id
                        for item in everything
                        if (types is None or item.type in types)
                        and (span.ids is None or item.id in span.ids)
                        and item.id.startswith(span.prefix)
                        and item.id > span.after
                    ]
                    hold(found == expected, f"{span} selects {expected} of {types}, not {found}")


@named_plain
def rows_are_the_assets(subject: Subject) -> None:
    """Rows are assets with nothing left out: the same, in the same order, of the same span and types."""
    with subject.opened() as store:
        published(store, 0, *map(asset, _IDS))
        published(store, 1, asset("a", "2"), removals=["c/a"])
        for asked in ((PARTITION, 1), (PARTITION, 2), (PARTITION, 2, [THING], Span(prefix="a/"))):
            made = [row.asset() for row in store.intent.rows(*asked)]
            hold(made == list(store.intent.assets(*asked)), f"rows{asked} become its assets, not {made}")


RULES: tuple[Rule, ...] = (spans_select, rows_are_the_assets)
