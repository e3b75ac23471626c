"""Probes: how the replicas of a `lehr.Process` are asked about their health."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

Argument = Annotated[str, msgspec.Meta(max_length=32_768, pattern=r"^[^\0]*$")]
Status = Annotated[int, msgspec.Meta(ge=100, le=599)] | Literal["1xx", "2xx", "3xx", "4xx", "5xx"]
HeaderName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}$")]
HeaderValue = Annotated[str, msgspec.Meta(max_length=4000, pattern=r"^[\t -~]*$")]

_LOOPBACK = re.compile(r"http://(127(\.\d{1,3}){3}|localhost|\[::1\])(:(\d+|\{[^{}]*\}))?(/.*)?")
_URL = re.compile(r"http://[!-~]+")
_TCP = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(\d{1,5}|\{[^{}]*\})")
_TCP_LOOPBACK = re.compile(r"(127(\.\d{1,3}){3}|localhost|\[::1\]):.*")
_LARGEST_PATTERN = 1 << 20  # bytes of the compiled program


class Probe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One way to ask a replica: exactly one of `url`, `tcp` and `command`.

    Attributes:
        url: succeeds if GET has the expected answer.
        headers: sent with it.
        expect_status: statuses of the answer (200, or 2xx for any of 200 to 299); 200 by default.
        expect_headers: values of headers in the answer.
        expect_body: text in the first 64 KiB of the answer's body.
        expect_body_pattern: regular expression, without look-around and references, that is found there.
        tcp: `HOST:PORT`; succeeds if it accepts a connection.
        command: program and arguments; succeeds with exit status 0. It runs like the program itself, with the
            pid of the replica's process in MAINPID.
        timeout_seconds: for one attempt.
    """

    url: Argument = ""
    headers: dict[HeaderName, HeaderValue] = {}
    expect_status: Annotated[tuple[Status, ...], msgspec.Meta(min_length=1)] = (200,)
    expect_headers: dict[HeaderName, HeaderValue] = {}
    expect_body: Argument = ""
    expect_body_pattern: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    tcp: Argument = ""
    command: list[Argument] = []
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=8)] = 2.0

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ValueError(problem)

    def _problems(self) -> Iterator[str]:
        if [bool(self.url), bool(self.tcp), bool(self.command)].count(True) != 1:
            yield "a probe must have exactly one of `url`, `tcp` and `command`"
        of_url = (*self.headers, *self.expect_headers, self.expect_body, self.expect_body_pattern)
        if not self.url and (any(of_url) or self.expect_status != (200,)):
            yield "`headers` and `expect_...` need a `url`"
        if self.url and not _URL.fullmatch(self.url):
            yield "`url` must start with http:// and have no spaces"
        if self.tcp and not _TCP.fullmatch(self.tcp):
            yield "`tcp` must have the form 127.0.0.1:{port}"
        if self.command and not self.command[0]:
            yield "`command` of a probe starts with an empty string; name a program"
        if self.expect_body_pattern:
            try:
                finder(self.expect_body_pattern)
            except ValueError as error:
                yield f"`expect_body_pattern` {error}"

    @property
    def local(self) -> bool:
        """True if it asks on the loopback interface only."""
        if self.tcp:
            return _TCP_LOOPBACK.fullmatch(self.tcp) is not None
        return bool(self.command) or _LOOPBACK.fullmatch(self.url) is not None

    def texts(self) -> Iterator[str]:
        """The texts that may have placeholders."""
        yield from (self.url, self.tcp, *self.command)

    def filled(self, fill: Callable[[str], str]) -> Probe:
        """With placeholders replaced."""
        command = [fill(text) for text in self.command]
        return replace(self, url=fill(self.url), tcp=fill(self.tcp), command=command)


@functools.lru_cache(maxsize=1000)
def finder(pattern: str) -> Callable[[str], bool]:
    """Whether a text has a match of `pattern`, in time proportional to its length.

    Raises:
        ValueError: it is not a regular expression, or too large.
    """
    import jsonschema_rs  # noqa: PLC0415  (its engine; 10 ms that most processes do not need)

    try:
        options = jsonschema_rs.RegexOptions(size_limit=_LARGEST_PATTERN)
        validator: Any = jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except (jsonschema_rs.ValidationError, ValueError):
        raise ValueError("is not a regular expression without look-around and references") from None
    found: Callable[[str], bool] = validator.is_valid
    return found
