"""The partition that a process runs: that of its store, or the one that the workspace names."""

from __future__ import annotations

from collections.abc import Iterable

from lehr.base.diagnostics import Diagnostic, errors, in_order
from lehr.base.errors import LehrError, StalledError
from lehr.control.parts import Parts
from lehr.model.asset import Partition
from lehr.publish.problem_positions import with_excerpts


class NotPublishableError(LehrError):
    """Nothing to run: the workspace has errors and nothing was published before."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(in_order(diagnostics))
        super().__init__("the workspace cannot be published", code="CTL120")


async def partition_of(parts: Parts) -> Partition:
    """The partition that the state belongs to, else the one that the workspace names.

    If a state folder joins a store that others have used before, the workspace must name the same partition:
    otherwise it would take their lease.

    Raises:
        StalledError: it names another one; nothing was written, and no lease was taken.
        NotPublishableError: the state is new and the workspace names none.
        TransientError, StalledError: the source cannot be read.
    """
    known = parts.store.intent.partitions()
    if known and not parts.joins:
        return known[0]
    try:
        named = await _named_partition(parts)
        if known and named != known[0]:
            raise StalledError(
                f"the store belongs to partition {known[0]}, but the workspace names {named}",
                code="CTL121",
                why="a store holds one partition",
                fix=f"give {named} a schema of its own in the address of the store: ?schema={named}",
            )
    except BaseException:
        parts.forget_store()
        raise
    return named


async def _named_partition(parts: Parts) -> Partition:
    snapshot = await parts.reading.run(parts.source.newest)
    generated = await parts.generation.generate(snapshot)
    if generated.partition is None:
        raise NotPublishableError(with_excerpts(errors(generated.diagnostics), snapshot))
    return generated.partition
