"""CEL expressions that answer yes or no.

The one module that knows which implementation of CEL is used. It is imported when the first
expression is compiled, so that what uses none does not pay for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

Condition = Callable[[Mapping[str, Any]], bool]
"""Takes a value for each variable. Raises `ValueError` when the expression has no answer for them."""


@functools.lru_cache(maxsize=1024)
def compile_condition(expression: str, variables: tuple[str, ...]) -> Condition:
    """The condition that `expression` writes over `variables`, whose types are not known before.

    Raises:
        ValueError: it cannot be understood; the text says where.
    """
    from cel_expr_python import cel  # noqa: PLC0415

    environment = cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN))
    try:
        compiled = environment.compile(expression)
    except RuntimeError as error:
        raise ValueError(_first_line(str(error))) from error

    def condition(values: Mapping[str, Any]) -> bool:
        result = compiled.eval(data=dict(values))
        if result.type() == cel.Type.BOOL:
            return bool(result.value())
        if result.type() == cel.Type.ERROR:
            raise ValueError(_first_line(str(result)))
        raise ValueError(f"the answer is a {result.type().name()}, not true or false")

    return condition


def _first_line(text: str) -> str:
    line = text.partition("\n")[0]
    return line.removeprefix("INVALID_ARGUMENT: ERROR: <input>:").removeprefix("ERROR: ").strip()
