"""An `Explanation` as one value for other programs: `lehr why -o json`, and the same over HTTP."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict

from lehr.base.digest import Digest
from lehr.base.moments import Moment
from lehr.model.asset import AssetId, Partition
from lehr.model.control import AuditEntry, Control, ControlKind
from lehr.model.decision import Decision, Verdict
from lehr.model.diff import Diff
from lehr.model.operation import LedgerEntry, Operation
from lehr.query.asset_rows import Row
from lehr.query.explain import Explanation, NumberedDecision, headline


class ControlDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A `Control`, with its selector as written on the command line."""

    id: str
    kind: ControlKind
    partition: Partition
    selector: str
    reason: str
    actor: str
    at: Moment
    expires_at: Moment | None
    incarnation: int | None
    diff_digest: Digest | None
    check: AssetId | None


class DecisionDocument(Decision, frozen=True, kw_only=True):
    """A `Decision` with its number in the store."""

    number: int


class NumberedAuditEntry(AuditEntry, frozen=True, kw_only=True):
    """An `AuditEntry` with its number in the store."""

    number: int


class AwaitedAsset(Row, frozen=True):
    """An asset that is waited for.

    Attributes:
        cycle: True if the asset is already in the chain: the assets wait for each other forever.
    """

    cycle: bool = False


class ExplanationDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Why one asset has its status, beginning with one sentence.

    Attributes:
        verdicts: those of every check in the last decision, waiting ones first.
        diff: the differences then; null when nothing was compared.
        waits_for: for an asset that waits for others, those, and those that they wait for.
        controls: those that are active on it now.
        operation: the push under way, or else the last one.
        ledger: the state last applied to production, or found in it.
        decisions: those that led here, newest first, back to the one before the last push.
    """

    says: str
    asset: Row
    verdicts: tuple[Verdict, ...]
    diff: Diff | None
    waits_for: tuple[AwaitedAsset, ...]
    controls: tuple[ControlDocument, ...]
    operation: Operation | None
    ledger: LedgerEntry | None
    decisions: tuple[DecisionDocument, ...]


def explanation_document(explanation: Explanation) -> ExplanationDocument:
    """The whole explanation as one value."""
    return ExplanationDocument(
        says=headline(explanation),
        asset=explanation.row,
        verdicts=explanation.verdicts,
        diff=explanation.diff,
        waits_for=tuple(AwaitedAsset(**asdict(link.row), cycle=link.cycle) for link in explanation.chain),
        controls=tuple(map(control_document, explanation.controls)),
        operation=explanation.operation,
        ledger=explanation.ledger,
        decisions=tuple(map(decision_document, explanation.story)),
    )


def control_document(control: Control) -> ControlDocument:
    """A control, with its selector as text."""
    return ControlDocument(**{**asdict(control), "selector": str(control.selector)})


def decision_document(item: NumberedDecision) -> DecisionDocument:
    """A decision with its number."""
    return DecisionDocument(**asdict(item.decision), number=item.number)


def audit_entry(number: int, entry: AuditEntry) -> NumberedAuditEntry:
    """A command with its number."""
    return NumberedAuditEntry(**asdict(entry), number=number)
