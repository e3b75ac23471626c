"""Drafts `lehr.HttpResource` from the resources of a collection. Read-only."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from lehr.base.digest import canonical
from lehr.base.errors import StalledError
from lehr.base.pointers import parts_of
from lehr.plugins.http_resource.client import Client
from lehr.plugins.http_resource.compare import Intended
from lehr.plugins.http_resource.fields import MISSING, at, is_pointer
from lehr.plugins.http_resource.finding import items_of, read, url_of
from lehr.plugins.http_resource.payload import HTTP_RESOURCE, HttpResource
from lehr.sdk.discovered_ids import Ids
from lehr.sdk.plugin import Found

_MOST_FOUND = 1000
_OPTIONS = ("credentials", "fields", "id", "items", "match", "next")
_FORM = (
    "write the URL of a collection, then options such as match=/name fields=name,size credentials=env:TOKEN"
)


async def drafts(
    client: Client, revealed: Callable[[HttpResource], Awaitable[Intended]], query: Sequence[str]
) -> AsyncIterator[Found]:
    """A draft of each resource of a collection.

    Args:
        revealed: reads the secrets of a payload.
        query: the URL of the collection; then `NAME=VALUE` for `match`, `items`, `id`, `next` and
            `credentials` of the payload, and `fields`, names of the fields to declare, by default all.

    Raises:
        LehrError: the query cannot be understood, or the collection cannot be read.
    """
    options = _options(query)
    base = _base(query[0], options)
    intended = await revealed(_converted(base))
    items = [item async for item in items_of(client, intended)]
    if len(items) > _MOST_FOUND:
        raise StalledError(
            f"{query[0]} has more than {_MOST_FOUND:,} resources",
            code="RES129",
            fix="narrow the collection down, such as by `?name=...` in its URL",
        )
    match = options.get("match", "")
    values = Counter(canonical(_plain(at(item, match))) for item in items if match)
    ids = Ids()
    for item in items:
        url = url_of(intended.resource, item)
        observed = await read(client, intended, url)
        if observed.document is not None:  # it may just have been deleted
            twice = bool(match) and values[canonical(_plain(at(item, match)))] > 1
            yield _draft(base, options, url, observed.document, ids, twice=twice)


def _draft(
    base: dict[str, Any],
    options: dict[str, str],
    url: str,
    document: dict[str, Any],
    ids: Ids,
    *,
    twice: bool,
) -> Found:
    pointer, match = options.get("id", "/id"), options.get("match", "")
    names = options["fields"].split(",") if "fields" in options else list(document)
    body = {name: document[name] for name in names if name in document and name != parts_of(pointer)[0]}
    place = {"match": match} if match else {"import": url}
    payload = {**base, **place, "body": body}
    named = at(document, match or pointer)
    obstacle = f"another resource has the same value at {match}" if twice else _problem(payload)
    id = ids.propose(str(named) if isinstance(named, str | int) else url.rpartition("/")[2])
    return Found(id=id, type=HTTP_RESOURCE, payload=payload, obstacle=obstacle)


def _options(query: Sequence[str]) -> dict[str, str]:
    found = dict(part.partition("=")[::2] for part in query[1:])
    for name, value in found.items():
        if name not in _OPTIONS or not value or (name == "match" and not is_pointer(value)):
            raise StalledError(
                f"{name[:80]!r} is not an option, or has no valid value", code="RES130", fix=_FORM
            )
    return found


def _base(collection: str, options: dict[str, str]) -> dict[str, Any]:
    base: dict[str, Any] = {"collection": collection}
    base |= {name: options[name] for name in ("items", "id", "next") if name in options}
    if "credentials" in options:
        base["credentials"] = {"secret": options["credentials"]}
    return base


def _converted(base: dict[str, Any]) -> HttpResource:
    try:
        return msgspec.convert(base, HttpResource)
    except msgspec.ValidationError as error:
        raise StalledError("this is not a collection", code="RES131", why=str(error), fix=_FORM) from None


def _problem(payload: dict[str, Any]) -> str:
    try:
        msgspec.convert(payload, HttpResource)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _plain(value: Any) -> Any:
    return None if value is MISSING else value
