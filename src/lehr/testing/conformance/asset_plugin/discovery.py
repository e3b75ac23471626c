"""The rules of `discover`, for plugins that have one and subjects with a `query`."""

from __future__ import annotations

import msgspec

from lehr.model.asset import Asset, AssetId, id_problem, make_asset
from lehr.model.diff import Diff
from lehr.model.types import Schema
from lehr.sdk.plugin import AssetPlugin, Found
from lehr.testing.conformance.asset_plugin.subject import Subject, rule
from lehr.testing.conformance.rules import hold


@rule
async def discover_never_writes(subject: Subject) -> None:
    """`discover` only looks, and finds the same twice, also in a new process."""
    if not _discovers(subject):
        return
    await subject.apply(subject.asset)
    with subject.unchanged("discover never writes"):
        first, second = await subject.discover(), await subject.discover()
        await subject.restart()
        hold(first == second == await subject.discover(), "discover finds the same of the same")


@rule
async def what_is_discovered_is_as_intended(subject: Subject) -> None:
    """Discovery finds what was applied, and a draft without an obstacle has an empty diff."""
    if not _discovers(subject):
        return
    for applied in (subject.asset, subject.changed):
        await subject.apply(applied)
        drafts = await subject.discover()
        hold(any(not draft.obstacle for draft in drafts), f"{subject.query} finds the asset that was applied")
        ids = [draft.id for draft in drafts]
        hold(len(set(ids)) == len(ids), f"each draft has an id of its own, not {ids}")
        for draft in drafts:
            hold(draft.type in subject.plugin.types, f"a draft is of a type of the plugin, not {draft.type}")
            hold(id_problem(draft.id) is None, f"{draft.id!r} can be an id")
            if not draft.obstacle:
                diff = await _first_diff(subject, _asset(subject, draft))
                hold(diff.empty, f"a discovered draft has an empty diff, not {diff.changes}")


async def _first_diff(subject: Subject, asset: Asset) -> Diff:
    """The diff of an asset that has no handle yet, whatever handle the subject has."""
    handle, subject.handle = subject.handle, ""
    try:
        return await subject.diff(asset)
    finally:
        subject.handle = handle


def _discovers(subject: Subject) -> bool:
    return bool(subject.query) and type(subject.plugin.plugin).discover is not AssetPlugin.discover


def _asset(subject: Subject, draft: Found) -> Asset:
    """The draft as read from a file that contains it."""
    payload = msgspec.json.decode(msgspec.json.encode(draft.payload))
    hold(payload == draft.payload, "a draft is plain data")
    kind = subject.registry.types[draft.type].payload
    typed = payload if isinstance(kind, Schema) else msgspec.convert(payload, kind)
    return make_asset(AssetId(draft.id), draft.type, typed, {})
