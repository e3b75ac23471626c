"""Google's implementation of CEL, behind as much of it as we need."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cel_expr_python import cel

from lehr.base.cel.operators import NoAnswerError
from lehr.base.cel.tree import CONTAINER

_STATUS = re.compile(r"^(?:[A-Z_]+: )?(?:ERROR: )?(?:<input>:-1:-1: )?| \[[A-Z_]+\]$")
"""What the library puts around a message: the code of its status; a place where there is none."""

_PROBLEM = re.compile(r"^(?:[A-Z_]+: )?ERROR: <input>:(\d+):(\d+): (.*)$", re.MULTILINE)
_MOST = 5
"""Problems of one expression that are told."""


class Compiled:
    """An expression that was parsed and checked."""

    def __init__(self, expression: Any) -> None:
        self._expression = expression

    def serialized(self) -> bytes:
        """Its tree, as `lehr.base.cel.tree` reads it."""
        return bytes(self._expression.serialize())

    def answer(self, values: Mapping[str, Any]) -> Any:
        """What it comes to.

        Raises:
            NoAnswerError: it has no answer for these values.
        """
        data = {f"{CONTAINER}.{name}": value for name, value in values.items()}
        try:
            result = self._expression.eval(data=data)
        except RuntimeError as error:  # such as a key that is there twice
            raise NoAnswerError(_first_line(str(error))) from error
        if result.type() == cel.Type.ERROR:
            raise NoAnswerError(_first_line(str(result)))
        return result.plain_value()


def compile_text(text: str, variables: Sequence[str]) -> Compiled:
    """Parse and check `text`, over variables of any type.

    Raises:
        ValueError: it cannot be understood.
    """
    names = (f"{CONTAINER}.{name}" for name in variables)
    environment = cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN), container=CONTAINER)
    try:
        return Compiled(environment.compile(text))
    except RuntimeError as error:
        raise ValueError(_problems(str(error))) from error


def _problems(text: str) -> str:
    """What is wrong with an expression, in the order of its text; the same only where it is first."""
    found: dict[str, tuple[int, int]] = {}
    for line, column, problem in _PROBLEM.findall(text):
        place = int(line), int(column)
        found[problem] = min(place, found.get(problem, place))
    by_place = sorted(found.items(), key=lambda one: one[1])
    told = [f"{line}:{column}: {_plain(problem)}" for problem, (line, column) in by_place]
    more = [f"and {len(told) - _MOST} more"] if len(told) > _MOST else []
    return "; ".join([*told[:_MOST], *more]) or _first_line(text)


def _first_line(text: str) -> str:
    return _plain(text.partition("\n")[0])


def _plain(text: str) -> str:
    """A message of the library, without what only its authors know."""
    return _STATUS.sub("", text.replace(f" (in container '{CONTAINER}')", "")).strip()
