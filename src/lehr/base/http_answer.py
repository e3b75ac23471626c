"""An answer over HTTP, as a value. Pure."""

from __future__ import annotations

from collections.abc import Mapping


class Answer:
    """Status, headers (names in lower case; of one that is repeated, the last) and body of an answer."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.body = body
        self.headers = headers or {}
