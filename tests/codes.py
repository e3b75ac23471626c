"""Errors are asked for by their code: what a message says may change, its code does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, overload

import pytest

from lehr.base.errors import LehrError

E = TypeVar("E", bound=LehrError)


@overload
def raises(
    code: str, *, match: str | None = None
) -> AbstractContextManager[pytest.ExceptionInfo[LehrError]]: ...
@overload
def raises(
    code: str, kind: type[E], *, match: str | None = None
) -> AbstractContextManager[pytest.ExceptionInfo[E]]: ...
def raises(code: str, kind: type[LehrError] = LehrError, *, match: str | None = None) -> Any:
    """The block ends with the error that has this code.

    Args:
        kind: its class, where that says what is done about it (`TransientError`: tried again).
        match: a regular expression for what the error has to name, such as a path.
    """
    return _raises(code, kind, match)


@contextmanager
def _raises(code: str, kind: type[E], match: str | None) -> Iterator[pytest.ExceptionInfo[E]]:
    with pytest.raises(kind, match=match) as caught:
        yield caught
    assert caught.value.code == code, f"not {code}, but {caught.value.code}: {caught.value}"
