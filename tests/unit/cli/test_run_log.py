"""The form of the log: every line has a time, whoever wrote it, and JSON is one object for each line."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from lehr.cli.run_log import rendered
from lehr.control.activity_log import Level, LogLine

PROGRAM = """
import asyncio, warnings
from lehr.cli.run_log import configure_logs

configure_logs("json")

async def fails():
    raise ValueError("caf\\udce9")

async def main():
    asyncio.create_task(fails())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_exception_handler({"message": "a transport broke", "more": 1})
    warnings.warn("this is old", UserWarning)

asyncio.run(main())
import gc; gc.collect()
"""


def test_asyncio_and_warnings_log_in_our_form() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    events = {line["message"]: line for line in lines}
    never = events["Task exception was never retrieved"]
    assert (never["logger"], never["level"]) == ("asyncio", "error")
    assert "ValueError" in never["exception"]
    assert events["a transport broke"]["details"] == "more: 1"
    assert any("this is old" in line["message"] for line in lines)
    assert all(line["event"] == "log" and line["at"].endswith("Z") for line in lines)


SCRIPT = """
from lehr.base.log import Log
from lehr.cli.run_log import configure_logs, report

configure_logs({form})
report("enforcing")
report("refused:\\n\\n  a.yaml:1: wrong", "refused")
try:
    raise ValueError("broken")
except ValueError:
    Log().exception("a turn failed", asset="web/a")
Log().warning("store unavailable", error="disk full")
"""


def _written(form: str) -> list[str]:
    program = [sys.executable, "-c", SCRIPT.format(form=form)]
    return subprocess.run(program, capture_output=True, text=True, check=True).stderr.splitlines()


def test_each_line_of_text_begins_with_a_time_and_a_level_or_is_indented() -> None:
    lines = _written("'text'")
    begun = [
        line for line in lines if re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (info|warning|error) +\S", line)
    ]
    assert [line[29:] for line in begun] == [
        "enforcing",
        "refused:",
        "a turn failed: asset=web/a",
        "store unavailable: error=disk full",
    ]
    assert all(line in begun or line.startswith("  ") or not line for line in lines)
    assert "  ValueError: broken" in lines


def test_json_is_one_object_for_each_line() -> None:
    lines = [json.loads(line) for line in _written("'json'")]
    assert [line["event"] for line in lines] == ["run", "refused", "log", "log"]
    assert lines[1]["details"].strip() == "a.yaml:1: wrong"
    assert "ValueError: broken" in lines[2]["exception"]
    assert lines[3]["error"] == "disk full"


def test_before_the_log_is_configured_reports_are_plain() -> None:
    program = [sys.executable, "-c", "from lehr.cli.run_log import report; report('serving')"]
    assert subprocess.run(program, capture_output=True, text=True, check=True).stderr == "serving\n"


def test_no_control_character_reaches_a_terminal() -> None:
    assert "\x1b" not in rendered(LogLine(0.0, Level.INFO, "push", "a\x1b[31m"), "text")
    assert "\n" not in rendered(LogLine(0.0, Level.INFO, "push", "a\nb"), "json")
