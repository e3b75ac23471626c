"""Wraps the needed part of Google's implementation of CEL, and rewrites its messages in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cel_expr_python import cel

from lehr.cel.operators import NoAnswerError
from lehr.cel.tree import CONTAINER


class Compiled:
    """A parsed and checked expression."""

    def __init__(self, expression: Any) -> None:
        self._expression = expression

    def serialized(self) -> bytes:
        """Its tree, as `lehr.cel.tree` reads it."""
        return bytes(self._expression.serialize())

    def type(self) -> str:
        """Type of its answers, in lower case, if known in advance; else `dyn`."""
        return str(self._expression.return_type()).lower()

    def answer(self, values: Mapping[str, Any]) -> Any:
        """Its answer for these values.

        Raises:
            NoAnswerError: it has no answer for these values.
        """
        data = {f"{CONTAINER}.{name}": value for name, value in values.items()}
        try:
            result = self._expression.eval(data=data)
        except RuntimeError as error:  # such as a duplicate key
            raise NoAnswerError(plain(str(error))) from error
        if result.type() == cel.Type.ERROR:
            raise NoAnswerError(plain(str(result)))
        return result.plain_value()


def compile_text(text: str, variables: Sequence[str]) -> Compiled:
    """Parse and check `text`, over variables of any type.

    Raises:
        ValueError: it is not valid.
    """
    names = (f"{CONTAINER}.{name}" for name in variables)
    environment = cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN), container=CONTAINER)
    try:
        return Compiled(environment.compile(text))
    except RuntimeError as error:
        raise ValueError(problems(str(error))) from error


_STATUS = re.compile(r"^(?:[A-Z_]+: )?(?:ERROR: )?(?:<input>:-1:-1: )?| \[[A-Z_]+\]$")
"""Text that the library adds to a message: its status code; a position even if there is none."""

_PROBLEM = re.compile(r"^(?:[A-Z_]+: )?ERROR: <input>:(\d+):(\d+): (.*)$", re.MULTILINE)
_MOST = 5
"""Maximum number of reported problems of one expression."""

_MEANT = {"=": "==", "&": "&&", "|": "||", "=>": ">=", "and": "&&", "or": "||"}
"""Syntax of other languages, and its equivalent in CEL."""


def problems(text: str) -> str:
    """The problems of an expression, in the order of its text; duplicates only at the first place."""
    found: dict[str, tuple[int, int]] = {}
    for line, column, problem in _PROBLEM.findall(text):
        place, message = (int(line), int(column)), plain(problem)
        found[message] = min(place, found.get(message, place))
    by_place = sorted(found.items(), key=lambda one: one[1])
    lines = [f"{line}:{column}: {problem}" for problem, (line, column) in by_place]
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return "; ".join([*lines[:_MOST], *more]) or plain(text)


def plain(message: str) -> str:
    """The first line of a message."""
    line = message.partition("\n")[0].replace(f" (in container '{CONTAINER}')", "")
    bare = _STATUS.sub("", line).strip()
    for pattern, say in _WORDS:
        found = pattern.fullmatch(bare)
        if found is not None:
            return say(found)
    return bare


def _not_expected(found: re.Match[str]) -> str:
    what = found[1].strip()
    return f"`{what}` is not expected here{_hint(what)}"


def _not_understood(found: re.Match[str]) -> str:
    what = found[1].strip()
    if what.startswith(("'", '"', "`")):
        return f"the string that begins with {what} has no end, or an invalid \\ escape"
    return f"`{what}` is not understood{_hint(what)}"


def _hint(what: str) -> str:
    return f": write `{_MEANT[what]}`" if what in _MEANT else ""


_INPUT = "(?:mismatched|extraneous) input"

_WORDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), say)
    for pattern, say in (
        ("Syntax error: mismatched input '<EOF>' expecting '(.*)'", "`{0[1]}` is missing at the end".format),
        ("Syntax error: missing '(.*)' at '<EOF>'", "`{0[1]}` is missing at the end".format),
        ("Syntax error: missing '(.*)' at '.*'", "`{0[1]}` is missing before this".format),
        ("Syntax error: mismatched input '<EOF>' .*", "it ends where more is expected".format),
        (f"Syntax error: {_INPUT} '(.*)' expecting .*", _not_expected),
        ("Syntax error: no viable alternative at input '(.*)'", _not_expected),
        ("Syntax error: token recognition error at: '(.*)'", _not_understood),
        ('Key not found in map : "(.*)"', "no such key: {0[1]}".format),
    )
)
