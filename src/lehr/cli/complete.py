"""Values for shell completion: ids, types, incarnations and others, from the state or the named server.

What cannot be read has no values: nothing is printed, and nothing is written or repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from lehr.query.partition_view import Reading

Value = tuple[str, str]
"""A value and its explanation, which zsh and fish show."""

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem[str]]"]

_MOST = 1000
_CALENDAR = "lehr.Calendar"
_ROLLOUT_POLICY = "lehr.RolloutPolicy"
_TYPE = "type="


def _completing(find: Callable[[click.Context, str], Iterable[Value]]) -> Complete:
    """Completes what is typed with those values that begin with it."""

    def complete(ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        try:
            with ctx.scope(cleanup=False):
                fitting = (value for value in find(ctx, typed) if value[0].lower().startswith(typed.lower()))
                return [CompletionItem(value, help=text or None) for value, text in islice(fitting, _MOST)]
        except (LehrError, OSError):
            return []

    return complete


def _paths(kind: str) -> Complete:
    """Lets the shell complete paths: `file` or `dir`."""

    def complete(_ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(typed, type=kind)]

    return complete


def _reading() -> AbstractContextManager[Reading]:
    from lehr.cli.stored import open_reading  # its options are completed, so it imports this module

    return open_reading()


def _ids(reading: Reading, typed: str, types: tuple[str, ...] | None = None) -> Iterator[Value]:
    from lehr.sdk.store import Span

    newest = reading.newest()
    if newest is not None:
        rows = reading.intent.rows(reading.partition, newest.sequence, types, Span(prefix=typed))
        yield from ((row.id, row.type) for row in rows)


def _assets(_ctx: click.Context, typed: str) -> Iterator[Value]:
    with _reading() as reading:
        yield from _ids(reading, typed)


def _selectors(_ctx: click.Context, typed: str) -> Iterator[Value]:
    before, comma, part = typed.rpartition(",")
    with _reading() as reading:
        for value, text in _ids(reading, part):
            yield f"{before}{comma}{value}", text
        if part and part[: len(_TYPE)] == _TYPE[: len(part)]:
            types = {head.type for head in reading.intent.heads(reading.partition)}
            yield from ((f"{before}{comma}{_TYPE}{type}", "") for type in sorted(types))
    if not comma:
        yield "all", "every asset"


def _types(_ctx: click.Context, _typed: str) -> Iterator[Value]:
    from lehr.cli.types import known
    from lehr.query.types import pages

    yield from ((page.name, page.summary) for page in pages(known(None)))


def _types_and_fields(ctx: click.Context, typed: str) -> Iterator[Value]:
    from lehr.cli.types import known
    from lehr.query.types import find

    yield from _types(ctx, typed)
    above, registry = typed.rpartition(".")[0], known(None)
    if above.startswith((*registry.types, *registry.addons)):
        page, field = find(registry, above)
        yield from ((f"{above}.{item.name}", item.kind) for item in (field or page).fields)


def _statuses(_ctx: click.Context, _typed: str) -> Iterator[Value]:
    from lehr.model.decision import Status
    from lehr.query.asset_rows import INERT, NO_TURN

    yield from ((str(status), "") for status in (*Status, INERT, NO_TURN))


def _goals(ctx: click.Context, typed: str) -> Iterator[Value]:
    yield "converged", "nothing is left to do"
    yield from ((f"status={status}", "") for status, _text in _statuses(ctx, typed))


def _incarnations(_ctx: click.Context, typed: str) -> Iterator[Value]:
    yield "latest", "the newest"
    yield "previous", "the one before"
    with _reading() as reading:
        for header in reading.intent.incarnations(reading.partition, _MOST):
            yield str(header.sequence), ""
            if typed:
                yield header.name, ""


def _partitions(_ctx: click.Context, _typed: str) -> Iterator[Value]:
    from lehr.cli.stored import open_read_store

    with open_read_store() as store:
        yield from ((partition, "") for partition in store.intent.partitions())


def _overridable(_ctx: click.Context, typed: str) -> Iterator[Value]:
    with _reading() as reading:
        yield from _ids(reading, typed, (_CALENDAR,))


def _rollout_policies(_ctx: click.Context, typed: str) -> Iterator[Value]:
    with _reading() as reading:
        yield from _ids(reading, typed, (_ROLLOUT_POLICY,))


def _controls(ctx: click.Context, _typed: str) -> Iterator[Value]:
    of_command = {"resume": "pause", "unfreeze": "freeze", "unpin": "pin"}
    kind = of_command.get(ctx.info_name or "") or ctx.params.get("kind")
    with _reading() as reading:
        _number, controls = reading.records.controls(reading.partition, reading.now)
        shown = ((str(item.selector), item.reason) for item in controls if item.kind == kind)
        yield from ((text if "," in text else text.removeprefix("id="), reason) for text, reason in shown)


def _awaiting_approval(_ctx: click.Context, _typed: str) -> Iterator[Value]:
    from lehr.cli.approve import WAITING

    with _reading() as reading:
        for standing in reading.records.standings(reading.partition):
            if standing.condition.reason in WAITING:
                yield standing.asset, standing.condition.message


def _topics(ctx: click.Context, _typed: str) -> Iterator[Value]:
    from lehr.cli.help import TOPICS
    from lehr.model.reason import Reason

    names = ctx.params.get("names") or ()
    context = ctx.find_root()
    for name in names:
        if isinstance(context.command, click.Group) and (found := context.command.get_command(context, name)):
            context = click.Context(found, info_name=name, parent=context)
    if isinstance(context.command, click.Group):
        yield from ((name, "") for name in context.command.list_commands(context))
    if not names:
        yield from ((name, topic.summary) for name, topic in TOPICS.items())
        yield from ((str(reason), reason.meaning) for reason in Reason)


def complete_folder_or_selector(
    ctx: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem[str]]:
    """Lets the shell complete folders, and lists the selectors that begin with what is typed."""
    return complete_folder(ctx, parameter, typed) + complete_selector(ctx, parameter, typed)


complete_file = _paths("file")
complete_folder = _paths("dir")
complete_asset = _completing(_assets)
complete_selector = _completing(_selectors)
complete_type = _completing(_types)
complete_type_or_field = _completing(_types_and_fields)
complete_status = _completing(_statuses)
complete_goal = _completing(_goals)
complete_incarnation = _completing(_incarnations)
complete_partition = _completing(_partitions)
complete_overridable = _completing(_overridable)
complete_rollout_policy = _completing(_rollout_policies)
complete_control = _completing(_controls)
complete_awaiting_approval = _completing(_awaiting_approval)
complete_topic = _completing(_topics)
