"""What to send in order to create, change or delete a resource. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.plugins.http_resource.compare import Intended, Observed
from lehr.plugins.http_resource.fields import with_values


class Write(msgspec.Struct, frozen=True):
    """A request that changes production.

    Attributes:
        what: what it does to the resource, for messages.
        again: whether it is harmless to send it twice.
        body: with secrets; None for none.
    """

    method: str
    url: str
    what: str
    again: bool
    headers: dict[str, str] = {}
    body: bytes | None = None

    def __repr__(self) -> str:
        return f"Write({self.method} {self.url})"


_PATCH_TYPES = {"patch": "application/json", "merge-patch": "application/merge-patch+json"}


def creation(intended: Intended, operation: str) -> Write:
    """Creates the resource.

    Args:
        operation: id of the push, by which a server can recognize a request that it has had.
    """
    resource, body = intended.resource, _body(intended)
    json = {"content-type": "application/json"}
    if resource.url is not None and resource.create != "post":
        # Not over one that has been created since it was looked for.
        return Write("PUT", resource.url, "created", True, {**json, "if-none-match": "*"}, body)
    headers = {**json, "idempotency-key": operation}
    return Write("POST", resource.place, "created", resource.url is not None, headers, body)


def change(intended: Intended, observed: Observed) -> Write:
    """Brings the declared fields about, if the resource is still as it was observed."""
    update = intended.resource.update
    media = _PATCH_TYPES.get(update, "application/json")
    headers = {"content-type": media, **_unchanged(observed)}
    method = "PUT" if update == "put" else "PATCH"
    return Write(method, observed.url, "changed", True, headers, _body(intended))


def deletion(observed: Observed) -> Write:
    """Deletes the resource, if it is still as it was observed."""
    return Write("DELETE", observed.url, "deleted", True, _unchanged(observed))


def _unchanged(observed: Observed) -> dict[str, str]:
    return {"if-match": observed.etag} if observed.etag else {}


def _body(intended: Intended) -> bytes:
    values: dict[str, Any] = {pointer: value.text() for pointer, value in intended.secrets.items()}
    return msgspec.json.encode(with_values(intended.resource.body, values))
