"""Sensitive fields: their values must be references to secrets; other values are never shown."""

from __future__ import annotations

from typing import Any, NamedTuple

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.pointers import escaped
from lehr.model.secret import reference_problem
from lehr.model.types import sensitive_values

_REFERENCE = {"secret": "env:HIDDEN"}
"""Placeholder for a refused value, so that no message about the rest of the data can show it."""


class Screened(NamedTuple):
    """Plain data without values in sensitive fields.

    Attributes:
        refused: JSON pointers to the removed values, and why they are not references.
    """

    value: Any
    refused: list[tuple[str, str]]


def screened(value: Any, kind: Any, path: str) -> Screened:
    """`value`, intended as type `kind`, with references in place of refused values.

    Args:
        path: JSON pointer to `value`, the prefix of those returned.
    """
    found = ((place, reference_problem(item)) for place, item in sensitive_values(value, kind, path))
    refused = [(place, problem) for place, problem in found if problem is not None]
    if not refused:
        return Screened(value, [])
    return Screened(_replaced(value, path, {place for place, _ in refused}), refused)


def refusal(subject: str, pointer: str, problem: str, at: Position) -> Diagnostic:
    """GEN016: a sensitive field must not hold a plain value. Neither the value nor its line is shown."""
    return Diagnostic(
        code="GEN016",
        what=f"`{pointer}` of `{subject}` must be a reference to a secret",
        why=f"{problem}; everything in intent is stored, copied and readable by many",
        fix='keep it with `lehr secret encrypt FILE.age#KEY`, and write `{secret: "age:FILE.age#KEY"}` here '
        "(or `env:NAME`, `file:PATH`, `sops:FILE#KEY`)",
        subject=subject,
        at=at,
        confidential=True,
    )


def _replaced(value: Any, path: str, places: set[str]) -> Any:
    if path in places:
        return dict(_REFERENCE)
    if isinstance(value, dict):
        return {name: _replaced(item, f"{path}/{escaped(name)}", places) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, f"{path}/{index}", places) for index, item in enumerate(value)]
    return value
