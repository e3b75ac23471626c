"""What the command prints: lines of JSON or text, as errors and as progress. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.base.text import one_line
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden

_MOST_SUMMARY = 300
_MOST_DETAIL = 600
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(r"^[╷│╵] ?", re.MULTILINE)
_ERROR = re.compile(r"^Error: ", re.MULTILINE)
_PLACE = re.compile(r"^\s*on (.+?) line (\d+)", re.MULTILINE)
_LOCK = re.compile(r"^\s*(ID|Operation|Who|Created):\s+(.*?)\s*$", re.MULTILINE)

_NEEDS_INIT = (
    "initialization required",
    "inconsistent dependency lock file",
    "missing required provider",
    "module not installed",
    "required plugins are not installed",
    "failed to load plugin schemas",
    "could not load plugin",
)
_NEEDS_LOCK_FILE = ("inconsistent dependency lock file", "dependency changes detected")
_NEEDS_A_PERSON = (
    *_NEEDS_LOCK_FILE,
    "state migration action",
    "unsupported terraform core version",
    "unsupported opentofu core version",
    "failed to read variables file",
    "instance cannot be destroyed",
)


class Problem(msgspec.Struct, frozen=True):
    """An error that the command reports.

    Attributes:
        file, line: in the configuration; empty and 0 for none.
        address: of the resource that it concerns; empty for none.
    """

    summary: str
    detail: str = ""
    file: str = ""
    line: int = 0
    address: str = ""

    @property
    def needs_init(self) -> bool:
        """Whether `init` may solve it."""
        return any(part in self.summary.lower() for part in _NEEDS_INIT)

    @property
    def is_lock(self) -> bool:
        """Whether another command has the lock of the state."""
        return self.summary == "Error acquiring the state lock" and "Lock Info" in self.detail


class Steps(msgspec.Struct):
    """The changes of an `apply` so far."""

    started: int = 0
    done: int = 0
    failed: int = 0


def json_problems(output: bytes) -> list[Problem]:
    """The errors in lines of JSON. Anything else in `output` is ignored."""
    return [problem for line in lines_of(output) if (problem := _problem(line)) is not None]


def lines_of(output: bytes) -> Iterator[dict[str, Any]]:
    """The objects in lines of JSON."""
    for line in output.splitlines():
        if line.startswith(b"{"):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield found


def text_problems(text: str) -> list[Problem]:
    """The errors in what the command prints for people; all of the text, if it does not mark any."""
    text = _FRAME.sub("", _ESCAPES.sub("", text))
    parts = _ERROR.split(text)[1:]
    if not parts and text.strip():
        return [Problem(one_line(text))]
    return [_text_problem(part) for part in parts]


def _text_problem(text: str) -> Problem:
    summary, _, body = text.partition("\n\n")
    place = _PLACE.search(body)
    if place is None:
        return Problem(one_line(summary), body)
    detail = body[place.end() :].partition("\n\n")[2]
    return Problem(one_line(summary), detail, place[1], int(place[2]))


def error_of(
    command: str, problems: list[Problem], otherwise: str, hidden: Hidden = NOTHING_HIDDEN
) -> LehrError:
    """The error to raise for a command that has failed.

    Args:
        command: what failed (`terraform plan`).
        otherwise: how it ended, for a command that reports no error.
    """
    if not problems:
        why = one_line(hidden.shown(otherwise)) or "it reports no error"
        return TransientError(f"{command} failed", code="TWS130", why=why)
    for problem in problems:
        if problem.is_lock:
            return _lock_error(problem, hidden)
    # Errors without a place often only announce those that have one.
    first = next((problem for problem in problems if problem.file), problems[0])
    why = _detail(first, hidden)
    text = described(first, hidden) + _more(problems)
    person = any(part in first.summary.lower() for part in _NEEDS_A_PERSON)
    if person or (first.file and not first.address):
        fix = "correct the module or its variables"
        if any(part in first.summary.lower() for part in _NEEDS_LOCK_FILE):
            fix = "run `init` in the module, and commit .terraform.lock.hcl (with `files`, list it there)"
        return StalledError(f"{command} failed: {text}", code="TWS106", why=why, fix=fix)
    return TransientError(f"{command} failed: {text}", code="TWS107", why=why)


def described(problem: Problem, hidden: Hidden = NOTHING_HIDDEN) -> str:
    """A problem in one line, with its place."""
    place = problem.address
    if problem.file:
        place = ", ".join(filter(None, (place, f"{problem.file} line {problem.line}")))
    text = one_line(hidden.shown(problem.summary))[:_MOST_SUMMARY]
    return f"{text} ({one_line(hidden.shown(place))[:_MOST_SUMMARY]})" if place else text


def reported(problems: list[Problem], otherwise: str, hidden: Hidden) -> str:
    """The problems in one line, for an outcome."""
    own = [problem for problem in problems if problem.summary != "execution halted"] or problems
    if not own:
        return one_line(hidden.shown(otherwise))
    detail = _detail(own[0], hidden)
    return described(own[0], hidden) + (f": {detail}" if detail else "") + _more(own)


def _more(problems: list[Problem]) -> str:
    count = len(problems) - 1
    return f"; {count} more error{'s' if count > 1 else ''}" if count else ""


def progress_of(line: dict[str, Any], steps: Steps) -> str | None:
    """The progress that a line of JSON reports, in one line; None for nothing new."""
    kind, hook = line.get("type"), line.get("hook")
    if not isinstance(hook, dict) or not isinstance(hook.get("resource"), dict):
        return None
    address = one_line(str(hook["resource"].get("addr", "")))[:_MOST_SUMMARY]
    action = one_line(str(hook.get("action", "")))
    if kind == "apply_start":
        steps.started += 1
        return f"{action} {address}"
    if kind == "apply_complete":
        steps.done += 1
        return f"{action} {address}: done after {hook.get('elapsed_seconds', 0)}s ({steps.done} done)"
    if kind == "apply_errored":
        steps.failed += 1
        return f"{action} {address}: failed"
    return None


def _problem(line: dict[str, Any]) -> Problem | None:
    found = line.get("diagnostic")
    if not isinstance(found, dict) or found.get("severity") != "error":
        return None
    place = found.get("range") or {}
    try:
        return Problem(
            str(found["summary"]),
            str(found.get("detail") or ""),
            str(place.get("filename", "")),
            int(place.get("start", {}).get("line", 0)),
            str(found.get("address") or ""),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return Problem(str(line.get("@message", "an error without text")))


def _detail(problem: Problem, hidden: Hidden) -> str:
    first = problem.detail.strip().partition("\n\n")[0]
    return one_line(" ".join(hidden.shown(first).split()))[:_MOST_DETAIL]


def _lock_error(problem: Problem, hidden: Hidden) -> LehrError:
    about = {name: one_line(hidden.shown(value)) for name, value in _LOCK.findall(problem.detail)}
    operation = about.get("Operation", "").removeprefix("OperationType").lower() or "an operation"
    since = about.get("Created", "").partition(".")[0] or "an unknown time"
    return TransientError(
        f"the state is locked by {about.get('Who', 'an unknown user')}",
        code="TWS108",
        why=f"{operation} has held the lock since {since}",
        fix="wait until it ends; if it has died, unlock the state by hand: terraform force-unlock "
        f"{about.get('ID', 'LOCK_ID')}",
    )
