"""The rules of a suite, and how each reports that it is broken: by its name, whatever went wrong."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

E = TypeVar("E", bound=Exception)
F = TypeVar("F", bound=Callable[..., Any])


def hold(condition: bool, rule: str) -> None:
    """Raise `AssertionError` naming `rule` unless `condition` is true."""
    if not condition:
        raise AssertionError(rule)


@contextlib.contextmanager
def raises(kind: type[E] | tuple[type[E], ...], rule: str) -> Iterator[list[E]]:
    """Raise `AssertionError` naming `rule` unless an error of this kind comes out; the list then has it."""
    caught: list[E] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    hold(bool(caught), rule)


class Rules(list[F]):
    """The rules of a suite; as a decorator, it adds one.

    The `AssertionError` of a rule begins with its name; any other exception also becomes one.
    """

    def __call__(self, rule: F) -> F:
        """Add a function, or coroutine function, of the suite's subject."""
        run: Any = _named(rule.__name__)(rule)
        if inspect.iscoroutinefunction(rule):

            @functools.wraps(rule)
            async def run(subject: Any) -> None:
                with _named(rule.__name__):
                    await rule(subject)

        self.append(run)
        added: F = run
        return added


@contextlib.contextmanager
def _named(rule: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        what = str(error) if isinstance(error, AssertionError) else f"it raised {error!r}"
        raise AssertionError(f"{rule}: {what}") from error
