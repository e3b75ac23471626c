"""structlog is imported and configured when something is logged, and not before."""

from __future__ import annotations

import subprocess
import sys


def printed(*lines: str) -> list[str]:
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


SET_UP = (
    "import sys",
    "from lehr.base.log import Log, configure_later, configure_now",
    "log = Log()",
    "configure_later(lambda: print('first'))",
    "configure_later(lambda: print('configured'))",
)


def test_the_first_line_configures_structlog_and_no_other_one() -> None:
    written = printed(*SET_UP, "print('structlog' in sys.modules)", "log.info('one')", "log.info('two')")
    assert written[:2] == ["False", "configured"]
    assert [line for line in written[2:] if "one" in line or "two" in line] == written[2:]
    assert len(written) == 4


def test_others_find_structlog_configured_after_it_was_asked_for() -> None:
    assert printed(*SET_UP, "configure_now()", "configure_now()") == ["configured"]
