"""Validators that are asked before the others judge, because they run elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from lehr.base.diagnostics import Severity
from lehr.base.errors import LehrError
from lehr.model.asset import AssetId
from lehr.model.incarnation import AssetChange
from lehr.sdk.validator import Proposal, WhenDown

if TYPE_CHECKING:
    from lehr.base.blocking import Blocking


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that such a validator has found.

    Attributes:
        code: the validator's own.
        asset: id of the asset that it is about, as the change leaves it or had it; None for none.
        pointer: JSON pointer into the asset's document; empty for the asset as a whole.
    """

    code: str
    severity: Severity
    what: str
    why: str = ""
    fix: str = ""
    asset: AssetId | None = None
    pointer: str = ""


class Answered(msgspec.Struct, frozen=True):
    """The answer of a validator: its findings, or why there are none.

    Attributes:
        when_down: how a change is handled that it has not judged.
    """

    validator: str
    answer: tuple[Finding, ...] | LehrError
    when_down: WhenDown = WhenDown.REFUSE


class AskedValidator(Protocol):
    """A validator that runs elsewhere.

    Attributes:
        name: in messages; lower-case letters, digits and hyphens.
    """

    @property
    def name(self) -> str: ...

    @property
    def when_down(self) -> WhenDown: ...

    def concerns(self, change: AssetChange) -> bool:
        """Whether it judges this change."""
        ...

    async def ask(self, proposal: Proposal, blocking: Blocking) -> Sequence[Finding] | LehrError:
        """Its findings in the changes that concern it; or why it has no answer.

        Args:
            blocking: runs everything that reads the proposal.

        Raises:
            LehrError: the proposal cannot be read.
        """
        ...
