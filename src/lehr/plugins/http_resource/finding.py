"""Finds a resource: at its URL, by its handle, or by a field within its collection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.base.http_answer import Answer
from lehr.plugins.http_resource import places
from lehr.plugins.http_resource.answers import document_in, next_link, object_in, strong_etag
from lehr.plugins.http_resource.client import Client
from lehr.plugins.http_resource.compare import Intended, Observed, same
from lehr.plugins.http_resource.fields import MISSING, at
from lehr.plugins.http_resource.payload import HttpResource

_MOST_PAGES = 100


async def find(client: Client, intended: Intended, known: str, lost: str) -> Observed:
    """The resource as it is now.

    Args:
        known: its URL, from the handle; empty for none.
        lost: id of a push that may have created it; empty for none.

    Raises:
        LehrError: it cannot be read, or it cannot be known which one it is.
    """
    resource = intended.resource
    if resource.url is not None:
        return await read(client, intended, resource.url)
    for url in filter(None, (known, resource.import_)):
        _require_origin(url, resource)
        found = await read(client, intended, url)
        if found.document is not None:
            return found
    if resource.match is not None:
        return await _matching(client, intended, resource.match)
    if lost:
        raise StalledError(
            f"a push may have created a resource in {resource.place}, which cannot be found again",
            code="RES116",
            why="its answer was lost, and `match` names no field to find it by",
            fix="look for it on the server: add `import: URL` if it is there, or `match`",
        )
    return Observed()


def created_at(resource: HttpResource, answer: Answer) -> str:
    """The URL of the resource that a POST has created; empty if the answer does not name it.

    Raises:
        LehrError: it names one elsewhere, where requests must not go.
    """
    if resource.url is not None:
        return resource.url
    location = answer.headers.get("location", "")
    if answer.status == 201 and location:
        return _required(places.linked(resource.place, location), resource)
    try:
        id = at(object_in(answer, resource.place), resource.id)
    except LehrError:
        return ""
    return "" if id is MISSING or id is None else _required(places.item(resource.place, id), resource)


def url_of(resource: HttpResource, item: Any) -> str:
    """The URL of an item in the list of the collection.

    Raises:
        StalledError: it has none, or one on another server.
    """
    return _required(places.item(resource.place, at(item, resource.id)), resource)


async def read(client: Client, intended: Intended, url: str) -> Observed:
    """The resource at `url` as it is now."""
    answer = await client.read(url, intended)
    if answer is None:
        return Observed(url)
    return Observed(url, object_in(answer, url), strong_etag(answer))


async def _matching(client: Client, intended: Intended, match: str) -> Observed:
    resource, wanted = intended.resource, at(intended.resource.body, match)
    found = [item async for item in items_of(client, intended) if same(at(item, match), wanted)]
    if not found:
        return Observed()
    if len(found) > 1:
        raise StalledError(
            f"{len(found)} resources in {resource.place} have this value at {match}",
            code="RES117",
            fix="delete all but one of them, name one in `import`, or match another field",
        )
    return await read(client, intended, url_of(resource, found[0]))


async def items_of(client: Client, intended: Intended) -> AsyncIterator[Any]:
    """The resources of the collection, page by page."""
    resource = intended.resource
    url, seen = resource.place, set[str]()
    while url:
        seen.add(url)
        answer = await client.read(url, intended)
        if answer is None:
            return
        document = document_in(answer, url)
        items = at(document, resource.items)
        if not isinstance(items, list):
            raise TransientError(
                f"{url} does not answer with a list of resources",
                code="RES118",
                fix="name the list within its answer in `items`",
            )
        for item in items:
            yield item
        url = _next(resource, url, answer, document)
        if url in seen or len(seen) >= _MOST_PAGES:
            raise StalledError(
                f"the pages of {resource.place} do not end",
                code="RES119",
                why=f"there are more than {_MOST_PAGES}, or one leads back to an earlier one",
                fix="narrow the collection down, such as by `?name=...` in its URL",
            )


def _next(resource: HttpResource, url: str, answer: Answer, document: Any) -> str:
    link = at(document, resource.next) if resource.next is not None else MISSING
    if not isinstance(link, str) or not link:
        link = next_link(answer)
    return _required(places.linked(url, link), resource) if link else ""


def _required(url: str | None, resource: HttpResource) -> str:
    if url is None:
        raise StalledError(
            f"{resource.place} answered with a URL or an id that cannot be used",
            code="RES120",
            why="requests with these credentials go to the same server only",
            fix="correct `id` or `next`, or ask those who run the server",
        )
    return url


def _require_origin(url: str, resource: HttpResource) -> None:
    if places.problem(url) or places.origin(url) != places.origin(resource.place):
        raise StalledError(
            f"the resource was created on {places.origin(url)}, and `collection` is on another server",
            code="RES121",
            fix="turn it down with its former `collection`, and declare another asset",
        )
