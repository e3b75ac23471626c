"""Numbers: of any size and precision in Terraform, int or float here wherever nothing is lost."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from lehr.plugins.terraform.provider import Number

MOST_DIGITS = 1200
"""As many as any float has. More is refused: a short text could stand for gigabytes."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?\Z", re.ASCII)


def parsed(digits: str) -> int | float | Number:
    """The number that `digits` writes in decimal.

    A decimal fraction that a float shows as the same digits is that float, although its binary value is
    another one: `0.1` stays `0.1`.

    Raises:
        ValueError: it is not a number, or has too many digits.
    """
    if not _NUMBER.match(digits) or len(digits) > MOST_DIGITS:
        raise ValueError("not a number")
    exact = Decimal(digits)
    if exact.adjusted() > MOST_DIGITS or exact.adjusted() < -MOST_DIGITS:
        raise ValueError("a number of too many digits")
    if exact == exact.to_integral_value():
        return int(exact)
    near = float(exact)
    return near if Decimal(repr(near)) == exact else Number(plain_digits(exact))


def normal(number: float) -> int | float:
    """An int if it is one.

    Raises:
        ValueError: it is infinite, or not a number.
    """
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return int(number) if number == int(number) else number


def digits_of(number: float | Number) -> str:
    """Decimal digits without an exponent."""
    return number.digits if isinstance(number, Number) else plain_digits(Decimal(repr(number)))


def plain_digits(exact: Decimal) -> str:
    """`exact` without an exponent, and without zeros at the end of a fraction."""
    text = format(exact, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
