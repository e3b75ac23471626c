"""Ids that are made of names."""

from __future__ import annotations

import pytest

from lehr.model.asset import id_problem
from lehr.sdk.discovered_ids import Ids


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("file/etc/nginx.conf", "file/etc/nginx.conf"),
        ("file//etc", "file/etc"),
        ("a b/.hidden", "a-b/hidden"),
        ("...", "unnamed"),
        ("\n", "unnamed"),
        ("-x-", "x"),
    ],
)
def test_an_id_reads_like_the_name(name: str, id: str) -> None:
    assert Ids().propose(name) == id
    assert id_problem(id) is None


def test_no_id_is_proposed_twice() -> None:
    ids = Ids()
    assert [ids.propose(name) for name in ("a b", "a-b", "a-b-2", "a?b")] == [
        "a-b",
        "a-b-2",
        "a-b-2-2",
        "a-b-3",
    ]


def test_long_names_are_cut_and_stay_apart() -> None:
    ids = Ids()
    first, second = (ids.propose(f"{'x' * 300}{end}") for end in "ab")
    assert first != second
    assert id_problem(first) is id_problem(second) is None
