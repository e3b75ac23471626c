"""The guide to forecasts leads from nothing known to a rollout next to its forecast."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.docs.test_tutorials import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "forecast-a-rollout.md").read_text()

# People take longer to read on than a rollout takes to begin and to be looked at.
_SHOWN = re.compile(r"^lehr rollout show$", re.MULTILINE)
_BEGUN = re.compile(r"^(git commit -qam .* && lehr sync)$", re.MULTILINE)


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    patient = _BEGUN.sub(
        r"\1\nuntil lehr rollout history | grep 'forecast\\|expected'; do sleep 0.2; done", PAGE
    )
    patient = _SHOWN.sub("sleep 1; lehr rollout show", patient)
    output = run(patient, folder)
    for block in re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            assert line in output
    first, second = output.split("if every unit of page-waves had new content:\n")[1:3]
    assert "Rollout ends: unknown" in first
    assert "Rollout ends: unknown" not in second.partition("Assumptions")[0]
    last = json.loads(output[output.index('{\n  "policy"') :])
    times = [
        unit[name][end]
        for unit in last["forecast"]["units"]
        for name in ("updated", "validated")
        for end in ("early", "late")
    ]
    assert len(times) == 12
    assert None not in times
    assert re.search(r"shop@\d+ .* completed .* (in time|early|late)", output)
