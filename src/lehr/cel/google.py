"""Google's implementation of CEL, behind as much of it as we need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cel_expr_python import cel

from lehr.cel.messages import plain, problems
from lehr.cel.operators import NoAnswerError
from lehr.cel.tree import CONTAINER


class Compiled:
    """An expression that was parsed and checked."""

    def __init__(self, expression: Any) -> None:
        self._expression = expression

    def serialized(self) -> bytes:
        """Its tree, as `lehr.cel.tree` reads it."""
        return bytes(self._expression.serialize())

    def type(self) -> str:
        """Of its answers, in lower case, as far as that is known beforehand; `dyn` if it is not."""
        return str(self._expression.return_type()).lower()

    def answer(self, values: Mapping[str, Any]) -> Any:
        """What it comes to.

        Raises:
            NoAnswerError: it has no answer for these values.
        """
        data = {f"{CONTAINER}.{name}": value for name, value in values.items()}
        try:
            result = self._expression.eval(data=data)
        except RuntimeError as error:  # such as a key that is there twice
            raise NoAnswerError(plain(str(error))) from error
        if result.type() == cel.Type.ERROR:
            raise NoAnswerError(plain(str(result)))
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
        raise ValueError(problems(str(error))) from error
