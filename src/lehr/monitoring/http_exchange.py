"""One request for metrics: no redirects, a bounded answer, and no credential in any message."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from lehr.base import http_exchange
from lehr.base.http_answer import Answer
from lehr.base.http_exchange import ExchangeError, Failure
from lehr.model.monitoring import Cause, MetricError

_MOST_BYTES = 8 << 20
_CAUSES = {
    Failure.TOO_LARGE: Cause.TOO_LARGE,
    Failure.UNREADABLE: Cause.UNREADABLE,
    Failure.UNSENDABLE: Cause.FAILED,
}


async def exchange(
    method: str,
    address: str,
    headers: Mapping[str, str],
    trust: ssl.SSLContext | None,
    most: int = _MOST_BYTES,
) -> Answer:
    """The answer to a request to the URL `address`. Takes as long as the server: the caller sets a limit.

    Args:
        method: GET, or POST, which is sent without a body.
        trust: for `https`.
        most: bytes of the body.

    Raises:
        MetricError: there is no answer, or it is a redirect or too large.
    """
    try:
        answer = await http_exchange.exchange(method, address, headers, trust, most)
    except ExchangeError as error:
        # Its cause is not chained: that message may have a credential.
        raise MetricError(_CAUSES.get(error.failure, Cause.UNREACHABLE), str(error)) from None
    if 300 <= answer.status < 400:
        # The credentials are for the configured server.
        raise MetricError(
            Cause.REDIRECTED, f"it answered with a redirect ({answer.status}), which is not followed"
        )
    return answer
