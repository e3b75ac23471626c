"""Checks that references have valid targets: assets, and encrypted files of the workspace."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import Asset, AssetId
from lehr.model.secret import Keeper
from lehr.model.types import Mention
from lehr.validate.proposal import AssetView, DeltaProposal

_MAKES = {Keeper.AGE: "lehr secret encrypt", Keeper.SOPS: "sops"}


def reference_missing(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL001: the target of a reference exists, even for assets that have not changed themselves."""
    names = [change.id for change in proposal.changes() if change.after is not None]
    for asset, mention in proposal.changed_mentions():
        if proposal.type_of(mention.target) is None:
            close = difflib.get_close_matches(mention.target, names, n=1)
            hint = f"did you mean `{close[0]}`?" if close else "declare it, or mend the id"
            yield _missing(proposal, asset, mention, "no file and no generator declares it", hint)
    for change in proposal.changes():
        if change.after is None:
            for asset, mention in proposal.mentioned_by_others(change.id):
                hint = "delete the reference in the same change, or put the asset back"
                yield _missing(proposal, asset, mention, "it is gone with this change", hint)


def reference_of_wrong_type(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL002: the target of a reference has a type that the field accepts."""
    for asset, mention in proposal.changed_mentions():
        yield from _wrong_type(proposal, asset, mention)
    for change in proposal.changes():
        if change.before is None or change.after is None or change.before.type == change.after.type:
            continue
        for asset, mention in proposal.mentioned_by_others(change.id):
            yield from _wrong_type(proposal, asset, mention)


def _missing(proposal: DeltaProposal, asset: Asset, mention: Mention, why: str, fix: str) -> Diagnostic:
    return Diagnostic(
        code="VAL001",
        what=f"`{asset.id}` refers to `{mention.target}`, which does not exist",
        why=f"{mention.path} names it, and {why}",
        fix=fix,
        subject=asset.id,
        at=proposal.place(asset, mention.path),
    )


def _wrong_type(proposal: DeltaProposal, asset: Asset, mention: Mention) -> Iterator[Diagnostic]:
    found = proposal.type_of(AssetId(mention.target))
    if found is None or not mention.types or found in mention.types:
        return
    wanted = " or ".join(mention.types)
    yield Diagnostic(
        code="VAL002",
        what=f"`{asset.id}` refers to `{mention.target}`, which is a {found}, not a {wanted}",
        why=f"{mention.path} takes assets of type {wanted} only",
        fix=f"name a {wanted}",
        subject=asset.id,
        at=proposal.place(asset, mention.path),
    )


def encrypted_file_missing(view: AssetView) -> Iterator[Diagnostic]:
    """VAL042: a reference to a secret in an encrypted file names a file of this revision."""
    asset = view.change.after
    if asset is None:
        return
    for pointer, secret in view.registry.secrets(asset):
        # Generation has filled in the digests of all existing files.
        if secret.keeper.encrypted and secret.digest is None:
            yield Diagnostic(
                code="VAL042",
                what=f"`{pointer}` of `{asset.id}` refers to {secret.place}, and there is no such file",
                why="encrypted files are read from the revision that refers to them, by paths relative to "
                "the folder of lehr.yaml",
                fix=f"make it with `{_MAKES[secret.keeper]}` and commit it, or mend the path",
                subject=asset.id,
                at=view.place(asset, pointer),
            )
