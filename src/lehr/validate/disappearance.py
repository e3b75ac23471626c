"""Assets that disappear from intent are turned down or let go, never just dropped (I4)."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.base.text import MOST_NAMED, listed
from lehr.model.addons import TURNDOWN, is_turned_down
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange
from lehr.validate.proposal import AssetView, DeltaProposal


def disappeared(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL010: an asset that has left intent was turned down before, or is let go.

    An asset without production may leave. If there are many, some are named and the others counted, so that
    the response to an emptied directory stays readable.
    """
    gone = sorted(
        (
            change.before
            for change in proposal.changes()
            if change.before is not None and _is_lost(proposal, change)
        ),
        key=lambda asset: asset.id,
    )
    if len(gone) > MOST_NAMED:
        yield _many_gone(gone)
    else:
        yield from map(_gone, gone)


def type_changed(view: AssetView) -> Iterator[Diagnostic]:
    """VAL011: an id keeps its type; another type means another thing in production.

    This also applies after the asset has left intent, as long as its turndown continues.
    """
    before, after = view.change.before or view.leaving, view.change.after
    if before is None or after is None or before.type == after.type or view.registry.inert(before.type):
        return
    if view.leaving is None:
        what = f"`{after.id}` was a {before.type}, and is now a {after.type}"
        why = f"the {before.type} in production would be left without an asset"
        fix = f"give the {after.type} another id, and turn `{after.id}` down with the addon {TURNDOWN}"
    else:
        what = f"`{after.id}` is now a {after.type}, and is still being turned down as a {before.type}"
        why = f"the {before.type} in production would be left without an asset"
        fix = f"wait until it is removed (lehr why {after.id}), or give the {after.type} another id"
    yield Diagnostic(
        code="VAL011", what=what, why=why, fix=fix, subject=after.id, at=view.place(after, "/type")
    )


def let_go_is_present(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL012, a warning: an asset that is let go is not declared."""
    for id in proposal.limits.let_go:
        asset = proposal.asset(AssetId(id))
        if asset is not None:
            yield Diagnostic(
                code="VAL012",
                what=f"lehr.yaml lets `{id}` go, but it is still declared",
                why=f"it is declared at {asset.origin}; letting go takes effect once that is gone",
                fix="delete the entry under let_go, or the asset",
                subject=id,
                at=asset.origin,
                severity=Severity.WARNING,
            )


def _is_lost(proposal: DeltaProposal, change: AssetChange) -> bool:
    """Whether the asset is gone without a request to remove it."""
    if change.before is None or change.after is not None:
        return False
    inert = proposal.registry.inert(change.before.type)
    return not inert and not is_turned_down(change.before) and change.id not in proposal.limits.let_go


def _ways_out(id: str) -> str:
    return (
        f"to remove it from production, declare it again with the addon `{TURNDOWN}: {{reason: ...}}`; "
        f"to leave it in production without Lehr, write `let_go: {{{id}: REASON}}` in lehr.yaml"
    )


def _gone(asset: Asset) -> Diagnostic:
    return Diagnostic(
        code="VAL010",
        what=f"`{asset.id}` has disappeared without a turndown",
        why=f"it was declared at {asset.origin}; its absence does not determine what should happen to it",
        fix=_ways_out(asset.id),
        subject=asset.id,
        at=former_file(asset),
    )


def _many_gone(gone: list[Asset]) -> Diagnostic:
    names = listed([f"`{asset.id}`" for asset in gone])
    files = sorted({asset.origin.file for asset in gone if asset.origin is not None})
    where = ", ".join(files[:3]) + (f" and {len(files) - 3} more files" if len(files) > 3 else "")
    return Diagnostic(
        code="VAL010",
        what=f"{len(gone)} assets have disappeared without a turndown: {names}",
        why=f"they were declared in {where}; their absence does not determine what should happen to them",
        fix=f"put the files back; or, for each asset: {_ways_out('ID')}",
        subject=gone[0].id,
        at=former_file(gone[0]),
    )


def former_file(asset: Asset) -> Position | None:
    """Where an asset was declared; only the file: its line numbers are those of an older revision."""
    return None if asset.origin is None else Position(asset.origin.file)
