"""Freeze: nothing is pushed while it is active; everything else continues."""

from __future__ import annotations

import datetime as dt
import shlex
from typing import Annotated

import msgspec

from lehr.checks.governing_assets import Governing, active_controls
from lehr.model.addons import OWNER, Owner
from lehr.model.asset import Asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Verdict
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.model.types import AssetType
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest


class Freeze(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stop pushes of the selected assets, starting with the incarnation that contains this asset.

    Attributes:
        select: which assets.
        reason: shown for every asset that waits.
        until: when it ends automatically: ISO 8601 with an offset (`2026-12-27T08:00:00+01:00`, or
            `Z`). Without it, the freeze ends when this asset is removed.
    """

    select: Selector
    reason: Annotated[str, msgspec.Meta(min_length=1)]
    until: Annotated[dt.datetime, msgspec.Meta(tz=True)] | None = None


FREEZE_TYPE = AssetType("lehr.Freeze", Freeze, governs=True)


class FreezeCheck(CheckPlugin):
    """Waits while a `lehr.Freeze` asset or a freeze from the command line selects the asset."""

    name = "freeze"

    def __init__(self) -> None:
        self._freezes = Governing(FREEZE_TYPE, Freeze, lambda payload: payload)

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        verdicts = [
            _of_asset(asset, freeze, read)
            for asset, freeze in self._freezes.selecting(request, read)
            if freeze.until is None or request.now < freeze.until.timestamp()
        ]
        verdicts.extend(map(_of_control, active_controls(ControlKind.FREEZE, request, read)))
        return verdicts


def _of_asset(asset: Asset, freeze: Freeze, read: CheckReader) -> Verdict:
    owner = read.addon(asset, OWNER, Owner)
    who = f"{asset.id} of {owner.team}" if owner else asset.id
    ends = f", or wait until {freeze.until.isoformat(' ', 'minutes')}" if freeze.until else ""
    return Verdict(
        f"{FreezeCheck.name}/{asset.id}",
        allow=False,
        reason=Reason.FROZEN,
        message=f"frozen by {who}: {freeze.reason}",
        unblock=f"remove the asset {asset.id} from intent{ends}",
        until=freeze.until.timestamp() if freeze.until else None,
    )


def _of_control(control: Control) -> Verdict:
    ends = "" if control.expires_at is None else ", or wait until it expires"
    return Verdict(
        f"{FreezeCheck.name}/{control.id}",
        allow=False,
        reason=Reason.FROZEN,
        message=f"frozen by {control.actor}: {control.reason}",
        unblock=f"lift the freeze with `lehr unfreeze {shlex.quote(str(control.selector))}`{ends}",
        until=control.expires_at,
    )
