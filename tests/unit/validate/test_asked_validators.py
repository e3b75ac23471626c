"""Answers of validators of plugins become diagnostics; one without an answer never lets a change pass."""

from __future__ import annotations

import pytest

from lehr.base.diagnostics import Diagnostic, Position, Severity, errors
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import AssetId, Partition
from lehr.model.incarnation import AssetChange
from lehr.sdk.asked_validator import Answered, Finding
from lehr.sdk.validator import Limits, WhenDown, is_beyond_source
from lehr.validate import UNANSWERED, DeltaProposal, MappingPredecessor, validate
from tests.unit.validate.proposing import REGISTRY, job

DOWN = TransientError("the plugin house has ended", code="PLG126", why="exit code 3", fix="see its log")


def judged(*answered: Answered) -> list[Diagnostic]:
    old = job("old")
    changes = [AssetChange(AssetId("a"), None, job("a")), AssetChange(AssetId("old"), old, None)]
    proposal = DeltaProposal(
        Partition("shop"),
        REGISTRY,
        Limits(let_go={"old": "moved"}),
        changes,
        MappingPredecessor({old.id: old}, REGISTRY),
        lambda asset, pointer: Position(f"{asset.id}.yaml", 3, len(pointer)),
        answered=answered,
    )
    return [item for item in validate(proposal) if not item.code.startswith("VAL0") or item.code == "VAL080"]


def finding(**changes: object) -> Finding:
    return Finding(**{"code": "N001", "severity": Severity.ERROR, "what": "it is wrong", **changes})  # type: ignore[arg-type]


def test_findings_have_the_code_of_their_validator_and_a_place() -> None:
    found = finding(asset=AssetId("a"), pointer="/payload/x", why="w", fix="f")
    (shown,) = judged(Answered("naming", (found,)))
    assert (shown.code, shown.subject, shown.at) == ("naming/N001", "a", Position("a.yaml", 3, 10))
    assert (shown.what, shown.why, shown.fix) == ("it is wrong", "w", "f")
    assert errors([shown])


def test_a_finding_about_no_asset_is_about_its_validator() -> None:
    (shown,) = judged(Answered("naming", (finding(severity=Severity.WARNING),)))
    assert (shown.subject, shown.at, shown.severity) == ("naming", None, Severity.WARNING)


def test_a_finding_about_a_removed_asset_has_no_line() -> None:
    """Its lines are those of an older revision."""
    (shown,) = judged(Answered("naming", (finding(asset=AssetId("old")),)))
    old = job("old").origin
    assert shown.at == (None if old is None else Position(old.file))


@pytest.mark.parametrize(
    ("error", "when_down", "refused"),
    [
        (DOWN, WhenDown.REFUSE, True),
        (DOWN, WhenDown.WARN, False),
        (StalledError("it has no Validate"), WhenDown.REFUSE, True),
        (StalledError("it has no Validate"), WhenDown.WARN, True),
        (LehrError("anything else"), WhenDown.REFUSE, True),
    ],
)
def test_a_validator_without_an_answer_is_an_error_unless_it_may_be_down(
    error: LehrError, when_down: WhenDown, refused: bool
) -> None:
    (shown,) = judged(Answered("naming", error, when_down))
    assert (shown.code, shown.subject, bool(errors([shown]))) == ("VAL080", "naming", refused)
    assert error.what in shown.what
    assert shown.fix
    assert ("published without" in shown.fix) != refused


def test_the_message_names_the_code_and_the_cause() -> None:
    (shown,) = judged(Answered("naming", DOWN))
    assert (
        shown.what == "the validator `naming` has not judged the change: the plugin house has ended (PLG126)"
    )
    assert (shown.why, shown.fix) == ("exit code 3", "see its log; Lehr retries automatically")


def test_what_plugins_find_is_judged_again_at_each_pass() -> None:
    for shown in judged(Answered("naming", (finding(),)), Answered("hosts", DOWN)):
        assert is_beyond_source(shown.code)
    assert not is_beyond_source("VAL070")
    assert "VAL080" in UNANSWERED
