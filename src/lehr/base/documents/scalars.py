"""What an unquoted YAML scalar means: the core schema of YAML 1.2, section 10.3."""

from __future__ import annotations

import re

from lehr.base.documents.text import integer, number_problem

Scalar = str | int | float | bool | None

_CONSTANTS: dict[str, Scalar] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_MAYBE_NUMBER = frozenset("+-.0123456789")
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def resolve(text: str) -> Scalar:
    """The value of the plain scalar `text`.

    Raises:
        ValueError: it is a number that is not finite or does not fit into 64 bits.
    """
    if text[:1] not in _MAYBE_NUMBER:
        return _CONSTANTS.get(text, text)
    number: int | float | None
    if _DECIMAL.fullmatch(text):
        number = integer(text)
    elif _OCTAL.fullmatch(text):
        number = integer(text, 8)
    elif _HEXADECIMAL.fullmatch(text):
        number = integer(text, 16)
    elif _FLOAT.fullmatch(text):
        number = float(text)
    elif _NOT_FINITE.fullmatch(text):
        number = None
    else:
        return text
    if number is None or number_problem(number) is not None:
        raise ValueError(text)
    return number
