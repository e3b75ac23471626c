"""The guide to forecasts leads from nothing known to a rollout next to its forecast."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.test_tutorials import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "forecast-a-rollout.md").read_text()

# People take longer to read on than a rollout takes to begin, and a slow machine longer than a short soak.
_SHOWN = re.compile(r"^lehr rollout show$", re.MULTILINE)
_WHEN_KEPT = (
    "until lehr rollout show | grep -q 'forecast when it began'; do sleep 0.2; done\nlehr rollout show"
)
_BEGUN = re.compile(r"^(git commit -qam \"Serve version 2.* && lehr sync)$", re.MULTILINE)
_FIRST = r"\1\nuntil lehr rollout history | grep forecast; do sleep 0.2; done"


@pytest.mark.timeout(180)
def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    patient = _SHOWN.sub(_WHEN_KEPT, _BEGUN.sub(_FIRST, PAGE), count=1)
    patient = patient.replace("soak_seconds: 4", "soak_seconds: 8")
    output = run(patient, folder)
    for block in re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            assert line in output
    first, second = output.split("if every unit of page-waves had new content:\n")[1:3]
    assert "Rollout ends: unknown" in first
    assert "Rollout ends: unknown" not in second.partition("Assumptions")[0]
    # The log of `lehr run`, which goes on in the background, may follow.
    last, _end = json.JSONDecoder().raw_decode(output, output.index('{\n  "policy"'))
    times = [
        unit[name][end]
        for unit in last["forecast"]["units"]
        for name in ("updated", "validated")
        for end in ("early", "late")
    ]
    assert len(times) == 12
    assert None not in times
    assert re.search(r"shop@\d+ .* completed .* (in time|early|late)", output)
