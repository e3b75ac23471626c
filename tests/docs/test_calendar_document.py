"""The guide about calendars: every example is valid, and closes with the message that the guide shows."""

import asyncio
import re
from pathlib import Path

import msgspec

from lehr.base import documents
from lehr.checks import TYPES
from lehr.checks.calendar import CALENDAR_TYPE, Calendar, CalendarCheck
from lehr.checks.ical import ical_problems
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.types import Registry
from lehr.model.workspace_file import WorkspaceText
from lehr.testing.checks import FixedCheckReader, check_request
from tests.unit.checks.test_weekly import seconds

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "restrict-when-pushes-start.md").read_text()
WEB = make_asset(AssetId("web"), "lehr.Process", None, {"lehr.Labels": {"labels": {"tier": "critical"}}})


(ICS,) = re.findall(r"^```ics\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def calendars() -> list[Asset]:
    found = []
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (document,) = documents.load("example.yaml", block.encode()).documents
        value = document.value
        if "ical" in value["payload"]:
            value["payload"]["ical"] = {"file": value["payload"]["ical"], "text": ICS}
        payload = msgspec.convert(value["payload"], Calendar)
        found.append(make_asset(AssetId(value["id"]), CALENDAR_TYPE.name, payload, {}))
    return found


def closed(now: str) -> list[str]:
    reader = FixedCheckReader(Registry(TYPES, ADDONS), governing=calendars())
    verdicts = asyncio.run(CalendarCheck().check(check_request(WEB, now=seconds(now)), reader))
    return [verdict.message for verdict in verdicts if not verdict.allow]


def test_the_guide_shows_what_a_closed_calendar_says() -> None:
    moments = ("2026-11-26T12:00Z", "2026-03-08T12:00Z", "2026-07-10T07:00Z")
    messages = [message for moment in moments for message in closed(moment)]
    shown = re.findall(r"^```text\n(.*)\n```", PAGE, re.MULTILINE)
    assert shown
    assert set(shown) <= set(messages)


def test_the_file_of_the_guide_is_valid_and_leaves_out_a_week() -> None:
    assert list(ical_problems(WorkspaceText("sales.ics", text=ICS))) == []
    assert not any("sales" in message for message in closed("2026-07-17T07:00Z"))


def test_the_calendars_of_the_guide_are_open_on_a_monday_morning() -> None:
    assert closed("2026-11-23T09:00Z") == []
