"""References to secrets in encrypted files lead to files that the workspace has."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic
from lehr.model.secret import Keeper
from lehr.validate.proposal import AssetView

_MAKES = {Keeper.AGE: "lehr secret encrypt", Keeper.SOPS: "sops"}


def encrypted_file_missing(view: AssetView) -> Iterator[Diagnostic]:
    """VAL042: whoever refers to a secret in an encrypted file names one of this revision."""
    asset = view.change.after
    if asset is None:
        return
    for pointer, secret in view.registry.secrets(asset):
        # Generation has filled in the digests of all files that there are.
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
