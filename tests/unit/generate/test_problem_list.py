"""Problems are counted before they are more than anybody reads."""

from __future__ import annotations

from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.base.documents import MAX_PROBLEMS
from lehr.generate.outcome.problem_list import MAX_REPORTED, Collected, reported
from lehr.generate.typing.asset_files import read_assets
from lehr.testing.samples import registry


def problem(line: int, severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(code="X", what="x", at=Position("a.yaml", line, 1), severity=severity)


def test_what_is_wrong_with_one_file_is_listed_up_to_a_limit() -> None:
    found = read_assets("a.json", b"[" + b"1, " * 100_000 + b"1]", "", registry()).diagnostics
    assert len(found) == MAX_PROBLEMS + 1
    assert (found[-1].code, found[-1].severity) == ("GEN036", Severity.ERROR)
    assert str(found[-1].at) == f"a.json:1:{3 * MAX_PROBLEMS + 2}"


def test_warnings_alone_keep_no_asset_back() -> None:
    collected = Collected("a.yaml", [problem(line, Severity.WARNING) for line in range(5_000)])
    assert not collected.full
    assert len(collected.all()) == 5_000


def test_of_a_whole_workspace_errors_are_told_before_warnings() -> None:
    warnings = [problem(line, Severity.WARNING) for line in range(MAX_REPORTED)]
    assert reported(warnings) == tuple(warnings)
    told = reported([*warnings, problem(7), problem(3)])
    assert len(told) == MAX_REPORTED + 1
    assert told[:3] == (problem(3), problem(7), warnings[0])
    assert (told[-1].code, told[-1].severity) == ("GEN036", Severity.WARNING)
    assert " 2 " in told[-1].what
    many = reported([problem(1)] * (MAX_REPORTED + 2))
    assert many[-1].severity is Severity.ERROR
    assert reported(many) == many


def test_what_is_confidential_is_always_told_so_that_no_other_shows_its_line() -> None:
    secret = replace(problem(1), confidential=True)
    assert secret in Collected("a.yaml", [*[problem(1)] * 5_000, secret]).all()
    assert reported([*[problem(1)] * 20_000, secret])[0] == secret


def test_an_id_beyond_all_bounds_is_not_told_again_with_each_problem() -> None:
    asset = b'{"id": "' + b"x" * 1_000_000 + b'", "type": "sample.Service", "payload": {"nothing": 1}}'
    found = read_assets("a.json", asset, "", registry()).diagnostics
    assert [item.code for item in found] == ["GEN004", "GEN007"]
    assert all(len(item.subject) == 200 for item in found)
