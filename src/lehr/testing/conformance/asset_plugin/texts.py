"""The rules of `texts`: it only looks, and shows what a push changes."""

from __future__ import annotations

from lehr.model.asset import Asset
from lehr.model.diff import Goal
from lehr.sdk.plugin import TextChange
from lehr.testing.conformance.asset_plugin.subject import Subject, rule
from lehr.testing.conformance.rules import hold


@rule
async def texts_only_look(subject: Subject) -> None:
    """`texts` never writes, whether anything was applied or not, and shows the same twice."""
    for applied in (False, True):
        if applied:
            await subject.apply(subject.asset)
        with subject.unchanged("texts never writes"):
            for asset in (subject.asset, subject.changed):
                for goal in (Goal.PRESENT, *subject.goals):
                    first, second = await subject.texts(asset, goal), await subject.texts(asset, goal)
                    hold(first == second, f"texts shows the same twice, not {first} and {second}")


@rule
async def texts_show_what_a_push_changes(subject: Subject) -> None:
    """Each belongs to a change of the diff; after the push, production has the text that was announced."""
    await subject.apply(subject.asset)
    await _hold_equal(subject, subject.asset)
    announced = await _differing(subject, subject.changed)
    await subject.apply(subject.changed)
    await _hold_equal(subject, subject.changed)
    found = await _differing(subject, subject.asset)
    for path in announced.keys() & found.keys():
        before, after = announced[path].intended, found[path].observed
        hidden = announced[path].hidden or found[path].hidden
        hold(
            bool(hidden) or before == after,
            f"{path!r} is as announced after a push: {before!r}, not {after!r}",
        )


async def _hold_equal(subject: Subject, asset: Asset) -> None:
    for text in await subject.texts(asset):
        same = text.observed == text.intended
        hold(bool(text.hidden) or same, f"a text that is as intended has no difference, unlike {text}")


async def _differing(subject: Subject, asset: Asset) -> dict[str, TextChange]:
    """The texts that differ, by path."""
    paths = {change.path for change in (await subject.diff(asset)).changes}
    texts = await subject.texts(asset)
    hold(len({text.path for text in texts}) == len(texts), f"each path has one text, not {texts}")
    differing = {text.path: text for text in texts if text.hidden or text.observed != text.intended}
    hold(differing.keys() <= paths, f"texts belong to changes of the diff, {paths}, unlike {[*differing]}")
    for text in differing.values():
        shows = text.observed is not None or text.intended is not None
        hold(not (text.hidden and shows), f"a hidden text is left out, unlike {text}")
        hold(text.hidden.isprintable(), f"the reason is one line, unlike {text.hidden!r}")
    return differing
