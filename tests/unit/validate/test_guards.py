"""One change takes away, adds and enlarges only so much."""

from __future__ import annotations

from lehr.base.diagnostics import Severity
from lehr.model.incarnation import Acknowledgement
from lehr.sdk.validator import Growth, Limits, Share, Shrink
from lehr.validate import judge
from tests.unit.validate.proposing import JOB, NOTE, check, codes, job, jobs, missing, note, proposal

NOTES = [note(f"n{number}") for number in range(100)]
TIGHT = Limits(growth=Growth(percent=50, floor=3))


# --- shrinking --------------------------------------------------------------------------------


def test_of_one_type_no_more_goes_than_the_limits_allow_however_many_others_stay() -> None:
    down = [job(f"j{number:04}", addons=["Turndown"]) for number in range(8)]
    (found,) = check([*jobs(10), *NOTES], [*down, *jobs(10)[8:], *NOTES])
    assert (found.code, found.subject) == ("VAL021", JOB)
    assert not missing(found, "8 of 10", "30 %")


def test_a_type_may_have_limits_of_its_own() -> None:
    down = [job(f"j{number:04}", addons=["Turndown"]) for number in range(8)]
    before, after = [*jobs(10), *NOTES], [*down, *jobs(10)[8:], *NOTES]
    assert check(before, after, Limits(shrink=Shrink(types={JOB: Share(percent=90)}))) == []
    assert check(before, after, Limits(shrink=Shrink(types={JOB: Share(floor=8)}))) == []
    assert codes(check(before, after, Limits(shrink=Shrink(types={NOTE: Share(floor=8)})))) == ["VAL021"]


# --- growth -----------------------------------------------------------------------------------


def test_a_change_adds_no_more_than_the_limits_allow() -> None:
    assert check(jobs(8), jobs(12), TIGHT) == []
    (found,) = check(jobs(8), jobs(13), TIGHT)
    assert (found.code, found.subject, found.severity) == ("VAL022", "shop", Severity.ERROR)
    assert not missing(found, "5 to 8", "50 %")


def test_of_one_type_no_more_is_added_either() -> None:
    (found,) = check([*jobs(4), *NOTES], [*jobs(8), *NOTES], TIGHT)
    assert (found.code, found.subject) == ("VAL022", JOB)


def test_the_first_incarnation_and_a_new_type_may_have_any_number() -> None:
    assert check([], jobs(2000)) == []
    assert check(NOTES, [*NOTES, *jobs(40)], TIGHT) == []


# --- one asset --------------------------------------------------------------------------------


def test_one_asset_does_not_double_once_it_is_large() -> None:
    small, large = [["x" * 9] * times for times in (1_000, 2_000)]
    (found,) = check([job("a", command=small)], [job("a", command=large)])
    assert (found.code, found.subject) == ("VAL023", "a")
    assert not missing(found, "asset_percent")
    assert check([job("a", command=["x"])], [job("a", command=["x"] * 100)]) == []
    assert check([], [job("a", command=large)]) == []
    grown = [job(name, command=large) for name in "ab"]
    assert [item.subject for item in check([job(name, command=small) for name in "ab"], grown)] == [JOB]


# --- acknowledgements -------------------------------------------------------------------------


def acknowledged(code: str, subject: str, after: str = "shop@1") -> Limits:
    return Limits(acknowledge=(Acknowledgement(code, subject, after, "a new region"),))


def test_an_error_of_a_guard_says_how_it_is_acknowledged() -> None:
    (found,) = check(jobs(200), jobs(400))
    assert not missing(found, "acknowledge: [{code: VAL022, subject: shop, after: shop@1, reason: WHY}]")


def test_what_is_acknowledged_is_a_warning_and_the_acknowledgement_is_told() -> None:
    limits = acknowledged("VAL022", "shop")
    judgement = judge(proposal(jobs(200), jobs(400), limits))
    (found,) = judgement.diagnostics
    assert (found.code, found.severity) == ("VAL022", Severity.WARNING)
    assert not missing(found, "lehr.yaml", "a new region")
    assert judgement.acknowledged == limits.acknowledge


def test_an_acknowledgement_holds_for_one_incarnation_one_code_and_one_subject_alone() -> None:
    for limits in (acknowledged("VAL021", "shop"), acknowledged("VAL022", "other")):
        judgement = judge(proposal(jobs(200), jobs(400), limits))
        assert [item.severity for item in judgement.diagnostics] == [Severity.ERROR]
        assert judgement.acknowledged == ()
    stale = check(jobs(200), jobs(400), acknowledged("VAL022", "shop", "shop@7"))
    assert [(item.code, item.severity) for item in stale] == [
        ("VAL022", Severity.ERROR),
        ("VAL013", Severity.WARNING),
    ]
    assert not missing(stale[1], "shop@7", "shop@1")


def test_an_acknowledgement_that_was_not_needed_is_not_told() -> None:
    assert judge(proposal(jobs(2), jobs(3), acknowledged("VAL022", "shop"))) == ([], ())
