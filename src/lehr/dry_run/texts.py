"""Texts of a plan: what a push would change, line by line, without anything that may be a secret.

They exist only while they are shown. A `Diff` is stored with each decision, so it has no texts (ADR 0055).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.dry_run.revealed import MOST_SEARCHED, revealed_secret
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.plugin_errors import FAILURES, reraise_if_cancelled
from lehr.enforce.time_limit import within
from lehr.model.diff import Diff, Target
from lehr.sdk.plugin import MOST_TEXT, AssetPlugin, TextChange

log = Log()

_NOTHING: tuple[TextChange, ...] = ()


def has_texts(plugin: AssetPlugin) -> bool:
    """Whether the plugin can show texts at all."""
    return type(plugin).texts is not AssetPlugin.texts


async def texts_of(
    plugin: AssetPlugin, target: Target, read: RecordingReader, diff: Diff
) -> Sequence[TextChange]:
    """The texts behind the changes of `diff`; none if the plugin fails, since the changes are known."""
    read.understands = plugin.versions
    try:
        return _screened(await _asked(plugin, target, read), diff)
    except TimeoutError:
        log.warning("texts took too long; they are not shown", asset=target.id)
    except LehrError as error:
        log.warning("texts cannot be shown", asset=target.id, error=str(error))
    except FAILURES:
        reraise_if_cancelled()
        log.exception("plugin failed to show texts", asset=target.id, type=target.type)
    return _NOTHING


async def _asked(plugin: AssetPlugin, target: Target, read: RecordingReader) -> Sequence[TextChange]:
    """The plugin's answer, repeated until everything that it reads is in memory."""
    while True:
        found = _NOTHING
        try:
            found = tuple(await within(plugin.traits.diff_timeout, plugin.texts(target, read)))
        except FAILURES:
            if not read.missed:
                raise
        if not read.missed:
            return found
        await read.fetch_missed()


def _screened(texts: Iterable[TextChange], diff: Diff) -> list[TextChange]:
    paths = {change.path for change in diff.changes}
    return [
        TextChange(text.path, hidden=reason) if (reason := text.hidden or _reason_to_hide(text)) else text
        for text in texts
        if text.path in paths and (text.hidden or text.observed != text.intended)
    ]


def _reason_to_hide(text: TextChange) -> str:
    """Empty for a text that may be shown. Both are searched: a push may also replace a secret."""
    for side in (text.observed or "", text.intended or ""):
        if len(side) > MOST_TEXT:
            return f"it is longer than {MOST_TEXT >> 20} MiB"
        if max(map(len, side.split("\n"))) > MOST_SEARCHED:
            return f"it has a line of more than {MOST_SEARCHED:,} characters"
        if found := revealed_secret(text.path, side):
            return f"a part of it looks like {found}"
    return ""
