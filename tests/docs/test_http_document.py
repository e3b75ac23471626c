"""The page about HTTP names all that there is, and no more."""

from __future__ import annotations

import re
from pathlib import Path

from lehr.http.describing import HEALTH_PATH, openapi
from lehr.http.hooks import HOOK_PATH
from lehr.http.problems import STATUS
from lehr.http.records import RECORDS
from lehr.http.resources import RESOURCES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "http.md").read_text()


def test_every_path_and_every_parameter_is_described_and_no_other() -> None:
    described = set()
    for path, given in re.findall(r"^\| (?:`(/[^`?]*)\??([^`]*)`|\(itself\)) \|", PAGE, re.MULTILINE):
        described.add((path, frozenset(re.findall(r"(\w+)=", given))))
    there = set()
    for path, item in openapi((*RESOURCES, *RECORDS))["paths"].items():
        if path.startswith("/v1/partitions"):
            names = frozenset(p["name"] for p in item["get"]["parameters"] if p["in"] == "query")
            below = re.sub(r"{(\w+)}", lambda found: found[1].upper(), path.removeprefix("/v1/partitions"))
            there.add((below, names))
    assert described == there
    assert HEALTH_PATH in PAGE
    assert HOOK_PATH in PAGE


def test_every_code_is_described_with_its_status_and_no_other() -> None:
    told = re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE, re.MULTILINE)
    assert {code: int(status) for code, status in told} == STATUS
