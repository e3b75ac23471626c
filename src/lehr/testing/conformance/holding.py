"""How every suite reports a broken rule: by its name, whatever went wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

S = TypeVar("S")


def hold(condition: bool, rule: str) -> None:
    """Raise `AssertionError` naming `rule` unless `condition` is true."""
    if not condition:
        raise AssertionError(rule)


def named(rule: Callable[[S], Coroutine[Any, Any, None]]) -> Callable[[S], Coroutine[Any, Any, None]]:
    """`rule`, whose `AssertionError` begins with its name; any other exception also becomes one."""

    @functools.wraps(rule)
    async def run(subject: S) -> None:
        try:
            await rule(subject)
        except Exception as error:
            raise _broken(rule.__name__, error) from error

    return run


def named_plain(rule: Callable[[S], None]) -> Callable[[S], None]:
    """The same for a rule that is a plain function."""

    @functools.wraps(rule)
    def run(subject: S) -> None:
        try:
            rule(subject)
        except Exception as error:
            raise _broken(rule.__name__, error) from error

    return run


def _broken(rule: str, error: Exception) -> AssertionError:
    what = str(error) if isinstance(error, AssertionError) else f"it raised {error!r}"
    return AssertionError(f"{rule}: {what}")
