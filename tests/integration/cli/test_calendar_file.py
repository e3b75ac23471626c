"""An iCalendar file of the workspace, from the source to a push that waits and then starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ASSETS = """\
id: freeze
type: lehr.Calendar
payload:
  select: {ids: [config]}
  timezone: Europe/Berlin
  ical: calendars/freeze.ics
---
id: config
type: lehr.File
payload: {path: out/app.conf, content: one}
"""
ICS = """\
BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//example//EN
BEGIN:VEVENT
UID:1
SUMMARY:decade of quiet
DTSTART;TZID=Europe/Berlin:20200101T000000
DTEND;TZID=Europe/Berlin:20900101T000000
END:VEVENT
END:VCALENDAR
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("assets", "calendars"):
        (tmp_path / name).mkdir()
    (tmp_path / "lehr.yaml").write_text("partition: shop\n")
    (tmp_path / "assets" / "all.yaml").write_text(ASSETS)
    path = tmp_path / "calendars" / "freeze.ics"
    path.write_text(ICS)
    return path


def lehr(*arguments: str, code: int | None = 0) -> str:
    command = [sys.executable, "-m", "lehr", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert code in (None, done.returncode), done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_push_waits_for_the_end_of_an_event_and_follows_changes_of_the_file(file: Path) -> None:
    lehr("run", "--once", code=None)
    assert "freeze is closed until sun 2090-01-01 00:00 (Europe/Berlin): decade of quiet" in lehr(
        "why", "config"
    )
    assert not Path("out/app.conf").exists()
    file.write_text(ICS.replace(":2090", ":2021"))
    assert "+DTEND;TZID=Europe/Berlin:20210101T000000" in lehr("diff")
    lehr("run", "--once")
    assert Path("out/app.conf").read_text() == "one"


def test_mistakes_in_the_file_are_shown_with_their_lines(file: Path) -> None:
    file.write_text(ICS.replace("DTEND;TZID=Europe/Berlin", "DTEND;TZID=Europe/Berlni"))
    found = lehr("validate", code=1)
    assert "error[VAL044]" in found
    assert "calendars/freeze.ics:8:1" in found
    file.unlink()
    assert "error[VAL043]" in lehr("validate", code=1)
