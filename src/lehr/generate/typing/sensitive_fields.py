"""Sensitive fields: what stands there must be a reference to a secret, and is never told if it is none."""

from __future__ import annotations

from typing import Any, NamedTuple

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.pointers import escaped
from lehr.model.secret import reference_problem
from lehr.model.types import sensitive_values

_REFERENCE = {"secret": "env:HIDDEN"}
"""Stands in for a value that is refused, so that no message about the rest of the data can tell it."""


class Screened(NamedTuple):
    """Plain data without values in sensitive fields.

    Attributes:
        refused: where values stood, by JSON pointer, and why they are no references.
    """

    value: Any
    refused: list[tuple[str, str]]


def screened(value: Any, kind: Any, path: str) -> Screened:
    """`value`, meant to be of type `kind`, with references in the place of what is refused.

    Args:
        path: JSON pointer to `value`, which those of the answer begin with.
    """
    found = ((place, reference_problem(item)) for place, item in sensitive_values(value, kind, path))
    refused = [(place, problem) for place, problem in found if problem is not None]
    if not refused:
        return Screened(value, [])
    return Screened(_replaced(value, path, {place for place, _ in refused}), refused)


def refusal(subject: str, pointer: str, problem: str, at: Position) -> Diagnostic:
    """GEN016: no value in a sensitive field. Neither the value nor its line is shown."""
    return Diagnostic(
        code="GEN016",
        what=f"`{pointer}` of `{subject}` has to refer to a secret",
        why=f"{problem}; whatever is in intent is read, stored and copied by many",
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
