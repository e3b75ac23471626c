"""What is read while another thread or process publishes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import PARTITION, THING, asset, published


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("types", [None, [THING]])
@pytest.mark.parametrize("statement", range(4))
def test_an_incarnation_is_read_whole_whatever_is_published_meanwhile(
    tmp_path: Path, types: Sequence[str] | None, statement: int, alone: bool
) -> None:
    writer = SqliteStore(tmp_path / "state", alone=alone)
    store = SqliteStore(tmp_path / "state", read_only=True, alone=alone)
    published(writer, 0, asset("a", "1"), asset("b", "1"))
    seen: list[str] = []

    def publish_at_the_statement(text: str) -> None:
        if len(seen) == statement:
            published(writer, 1, asset("b", "2"), asset("c", "1"), removals=["a"])
        seen.append(text)

    with store._readers.session() as reader:
        reader.set_trace_callback(publish_at_the_statement)
    found = list(store.intent.assets(PARTITION, 1, types))
    assert found == [asset("a", "1"), asset("b", "1")]
    store.close()
    writer.close()
