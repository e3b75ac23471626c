"""The only door to randomness: jitter, identifiers and tokens.

Architecture invariant: no other module imports `random`, `secrets` or `uuid`.
"""

from __future__ import annotations

import random
import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, lower case
_RANDOM_CHARACTERS = 10
_TIME_CHARACTERS = 9
_TOKEN_BYTES = 32


class Chance:
    """A stream of random numbers from a seed; without one, the system chooses the seed."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)
        self._draw = self._random.random

    def uniform(self, low: float, high: float) -> float:
        """A float from `low` to `high`."""
        return low + (high - low) * self._draw()

    def identifier(self, now: float) -> str:
        """A new identifier that sorts by time: 9 characters of milliseconds, 10 of chance."""
        milliseconds = int(now * 1000)
        clock = _base32(milliseconds, _TIME_CHARACTERS)
        return clock + _base32(self._random.getrandbits(5 * _RANDOM_CHARACTERS), _RANDOM_CHARACTERS)


def new_token() -> str:
    """A token of 256 unpredictable bits. `Chance` is predictable, so it must not make tokens."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def _base32(number: int, width: int) -> str:
    characters = []
    for _ in range(width):
        number, digit = divmod(number, 32)
        characters.append(_ALPHABET[digit])
    return "".join(reversed(characters))
