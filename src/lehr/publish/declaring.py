"""Which declared types a candidate is judged by."""

from __future__ import annotations

from lehr.model.asset import Partition
from lehr.model.declared import TYPE, declared_type, declared_types
from lehr.model.types import AnyType
from lehr.sdk.generation import Generated
from lehr.sdk.store import StoredIntent


def types_for(generated: Generated, intent: StoredIntent | None, partition: Partition) -> list[AnyType]:
    """The types that a candidate declares, and those of its predecessor that it does not declare any more.

    What goes together with its type must still be known for what it was.

    Args:
        intent: where the predecessor is; None for none.
    """
    newest = None if intent is None else intent.newest(partition)
    known: dict[str, AnyType] = {}
    if intent is not None and newest is not None:
        before = map(declared_type, intent.assets(partition, newest.sequence, (TYPE,)))
        known.update((item.name, item) for item in before)
    known.update((item.name, item) for item in declared_types(generated.assets, generated.types))
    return list(known.values())
