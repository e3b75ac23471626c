"""`POST /hooks/git`: check the source now, after a git push.

Accepts requests of GitHub, GitLab and Gitea. If one is signed, it triggers a check and nothing else: the
content is then read from the source itself, as at any other time.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.http.problems import ProblemError

log = Log()

HOOK_PATH = "/hooks/git"

MEDIA_TYPES = frozenset({"application/json", "application/x-www-form-urlencoded"})
"""The media types that git servers send."""

_MOST_BYTES = 25 * 2**20  # the maximum that GitHub sends
_LONGEST_LENGTH = 12
_BODY_SECONDS = 10.0
_BETWEEN_SECONDS = 1.0

_SIGNED = ("x-hub-signature-256", "x-gitea-signature")
_TOKEN = "x-gitlab-token"  # noqa: S105 - the name of a header


class Hook:
    """Triggers a check of the source on a signed request; never runs two at a time, however many arrive.

    Args:
        secret: read for each request, so that a new one applies as soon as it is written; raises `LehrError`.
    """

    def __init__(
        self, secret: Callable[[], str], look: Callable[[], Awaitable[object]], clock: Clock
    ) -> None:
        if not secret():
            raise ValueError("an empty secret is not a secret")
        self._read_secret = secret
        self._look = look
        self._clock = clock
        self._asked = False
        self._looking: asyncio.Task[None] | None = None

    async def take(self, headers: Mapping[str, str], body: AsyncIterator[bytes]) -> None:
        """Accept a request; return when it is verified and the check is scheduled.

        Raises:
            ProblemError: it is not signed with the secret, is too large, or does not arrive.
        """
        _require_moderate(headers)
        secret = self._secret()
        given = next((headers[name] for name in _SIGNED if name in headers), None)
        if given is not None:
            expected = await self._signature(secret, body)
            genuine = hmac.compare_digest(given.removeprefix("sha256=").encode(), expected.encode())
        else:
            token = headers.get(_TOKEN, "").encode("latin-1")  # the bytes as sent
            genuine = hmac.compare_digest(token, secret)
        if not genuine:
            raise ProblemError(
                "Unauthorized",
                "the signature does not match the secret of this server",
                code="HTP110",
                fix="configure GitHub, GitLab or Gitea with the same secret as `lehr run`",
            )
        self._asked = True
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_while_asked(), name="hook")

    async def close(self) -> None:
        """Stop checking."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def _secret(self) -> bytes:
        try:
            found = self._read_secret()
        except LehrError as error:
            log.warning("cannot read the webhook secret, refusing webhooks", error=str(error))
            found = ""
        if not found:
            raise ProblemError(
                "Unauthorized", "this server has no secret to check the signature", code="HTP111"
            )
        return found.encode()

    async def _signature(self, secret: bytes, body: AsyncIterator[bytes]) -> str:
        """Discard the body."""
        signing = hmac.new(secret, digestmod=hashlib.sha256)
        size = 0
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for part in body:
                    size += len(part)
                    if size > _MOST_BYTES:
                        raise ProblemError(
                            "ContentTooLarge",
                            "the body is too long",
                            code="HTP112",
                            why=f"it has more than {_MOST_BYTES:,} bytes",
                        )
                    signing.update(part)
        except TimeoutError as error:
            raise ProblemError(
                "Timeout", "the body did not arrive in time", code="HTP113", fix="send it without delay"
            ) from error
        return signing.hexdigest()

    async def _look_while_asked(self) -> None:
        while self._asked:
            self._asked = False
            try:
                await self._look()
            except LehrError as error:
                log.warning("the check requested by a webhook failed", error=str(error))
            await self._clock.sleep(_BETWEEN_SECONDS)


def _require_moderate(headers: Mapping[str, str]) -> None:
    """Raises `ProblemError` for a request that no git server sends."""
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media and media not in MEDIA_TYPES:
        known = " or ".join(sorted(MEDIA_TYPES))
        raise ProblemError(
            "UnsupportedMediaType", f"{media[:80]} is not supported", code="HTP114", fix=f"send {known}"
        )
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > _LONGEST_LENGTH or int(length) > _MOST_BYTES:
        why = f"it has more than {_MOST_BYTES:,} bytes"
        raise ProblemError(
            "ContentTooLarge", "the body is too large", code="HTP115", why=why, fix="only send push events"
        )
