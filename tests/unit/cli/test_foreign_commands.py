"""Commands of other tools are answered with what to do in Lehr."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from lehr.cli.main import FOREIGN, SECTIONS, cli

OWN = {name for section in SECTIONS.values() for name in section}


def test_no_command_of_ours_is_foreign() -> None:
    assert not OWN & FOREIGN.keys()


@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_a_foreign_command_is_answered_with_commands_that_exist(name: str) -> None:
    done = CliRunner().invoke(cli, [name, "-f", "x.yaml"])
    assert done.exit_code == 2
    assert FOREIGN[name] in done.stderr
    assert set(re.findall(r"`lehr (\w+)", FOREIGN[name])) <= OWN
