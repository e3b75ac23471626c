"""Calls share what was found after all of them had begun."""

from __future__ import annotations

from lehr.base.findings import Findings


def test_calls_that_had_begun_share_findings_and_later_ones_do_not() -> None:
    findings: Findings[dict[str, str]] = Findings(dict)
    first, second = findings.begin(), findings.begin()
    findings.of(first)["a"] = "found"
    assert findings.of(second) == {"a": "found"}
    third = findings.begin()
    assert findings.of(second) == {"a": "found"}
    assert findings.of(third) == {}, "it began after the folder was looked at"
    findings.of(third)["b"] = "found"
    assert findings.of(first) == {"b": "found"}, "newer findings serve earlier calls"
