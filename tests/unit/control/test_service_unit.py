"""The unit that `lehr service install` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lehr.control.service_unit import MARK, ServiceUnit, quoted, unit_name


def unit(*arguments: str, system: bool = True) -> str:
    return ServiceUnit(
        command=["/usr/bin/lehr", *arguments],
        workspace="/srv/100%",
        folder=Path("/srv/100%"),
        environment={"LEHR_SIGNED_BY": '/etc/100% "sure"'},
        environment_file=Path("/etc/lehr/shop.env"),
        system=system,
    ).text()


def test_processes_survive_and_only_a_live_loop_feeds_the_watchdog() -> None:
    lines = unit().splitlines()
    assert lines[0] == MARK
    for line in (
        "Type=notify",
        "KillMode=process",
        "WatchdogSec=60",
        "NotifyAccess=main",
        "OOMPolicy=continue",
    ):
        assert line in lines
    assert any(line.startswith("ExecReload=") and "-HUP $MAINPID" in line for line in lines)


def test_a_unit_of_a_user_needs_no_root_and_no_system_target() -> None:
    text = unit(system=False)
    assert "User=" not in text
    assert "network-online" not in text
    assert "WantedBy=default.target" in text


def test_no_text_is_expanded() -> None:
    lines = unit().splitlines()
    assert "WorkingDirectory=/srv/100%%" in lines
    assert 'Environment="LEHR_SIGNED_BY=/etc/100%% \\"sure\\""' in lines
    assert "EnvironmentFile=-/etc/lehr/shop.env" in lines


def test_plain_arguments_are_written_as_they_are() -> None:
    assert quoted("/srv/shop") == "/srv/shop"
    assert quoted("--listen=127.0.0.1:8470") == "--listen=127.0.0.1:8470"
    assert quoted("100%") == '"100%%"'
    assert quoted("$HOME") == '"$$HOME"'


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("shop", "lehr-shop.service"),
        ("my shop@1", "lehr-my-shop-1.service"),
        ("..", "lehr-workspace.service"),
    ],
)
def test_any_name_of_a_folder_makes_a_name_of_a_unit(name: str, unit: str) -> None:
    assert unit_name(name) == unit
