"""Errors are asked for by their code: what a message says may change, its code does not."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
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
    return _Raises(code, kind, match)


class _Raises:
    """Keeps no error longer than `pytest.raises` does: its traceback holds cursors, and with them snapshots.

    A generator as a context manager would be part of that traceback, in a cycle that only the garbage
    collector breaks.
    """

    def __init__(self, code: str, kind: type[LehrError], match: str | None) -> None:
        self._code = code
        self._raises = pytest.raises(kind, match=match)

    def __enter__(self) -> pytest.ExceptionInfo[LehrError]:
        self._caught = self._raises.__enter__()
        return self._caught

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        expected = self._raises.__exit__(kind, error, traceback)
        if expected:
            found = self._caught.value
            assert found.code == self._code, f"not {self._code}, but {found.code}: {found}"
        return expected
