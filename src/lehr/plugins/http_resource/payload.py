"""The payload of `lehr.HttpResource`, and its checks before any request: all problems at once."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from lehr.base.hosts import is_loopback
from lehr.base.pointers import escaped, parts_of
from lehr.model.secret import Secret
from lehr.model.types import AssetType
from lehr.plugins.http_resource import places
from lehr.plugins.http_resource.fields import MISSING, at, is_pointer, within

HTTP_RESOURCE = "lehr.HttpResource"

_MOST_BODY = 1 << 16
_MOST_DEPTH = 32
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")
_OWN_HEADERS = frozenset(
    (
        *("accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length"),
        *("content-type", "cookie", "expect", "host", "idempotency-key", "if-match", "if-none-match"),
        *("proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"),
    )
)

Url = Annotated[str, msgspec.Meta(min_length=1)]
Status = Annotated[int, msgspec.Meta(ge=400, le=499)]
Scalar = str | int | bool


class Ready(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How an API that creates and updates resources asynchronously shows that it has finished.

    Attributes:
        field: JSON pointer to the status in the resource.
        in: values that mean that it has finished.
        failed: values that mean that it has given up.
        within_seconds: how long a push waits until it has finished.
    """

    field: str
    in_: Annotated[list[Scalar], msgspec.Meta(min_length=1)] = msgspec.field(name="in")
    failed: list[Scalar] = []
    within_seconds: Annotated[float, msgspec.Meta(gt=0, le=540)] = 300.0


class HttpResource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One resource of any HTTP API that speaks JSON.

    Only the fields in `body` are compared; fields that the server adds are ignored.

    Attributes:
        url: the resource, which is created by PUT. Exactly one of `url` and `collection` must be given.
        collection: where the resource is created by POST. The server chooses its URL, which Lehr remembers.
        match: JSON pointer to a field of `body` whose value identifies the resource within the collection.
            Without it, a resource whose URL was lost must be named in `import`.
        items: JSON pointer to the list of resources in an answer of the collection, if the answer is not the
            list.
        id: JSON pointer to the id or URL of a resource of the collection.
        next: JSON pointer to the URL of the next page in an answer of the collection. Links in headers
            (`Link: <...>; rel="next"`) are always followed.
        import: URL of an existing resource of the collection to adopt.
        body: the fields of the resource. Objects are compared field by field, lists as a whole; null means
            that the field is null or missing.
        secrets: by JSON pointer, fields of the body that are secrets.
        headers: sent with each request. They must not be secret.
        credentials: sent as `Authorization: Bearer`, only to this origin, over https or on loopback.
        create: the method that creates: `put` at `url`, `post` to `collection`; either may be used with
            `url`.
        update: how it is changed. `put` replaces it by the declared fields; `patch` and `merge-patch` send
            them by PATCH, as `application/json` or `application/merge-patch+json`.
        immutable: JSON pointers to fields that the API cannot change. To change one, the resource is deleted
            and created again, which needs approval.
        absent_on: statuses of a GET that mean that the resource does not exist.
        ready: how an asynchronous API shows that it has finished.
    """

    url: Url | None = None
    collection: Url | None = None
    match: str | None = None
    items: str = ""
    id: str = "/id"
    next: str | None = None
    import_: Url | None = msgspec.field(name="import", default=None)
    body: dict[str, Any] = {}
    secrets: dict[str, Secret] = {}
    headers: dict[str, str] = {}
    credentials: Secret | None = None
    create: Literal["put", "post"] | None = None
    update: Literal["put", "patch", "merge-patch"] = "put"
    immutable: list[str] = []
    absent_on: Annotated[tuple[Status, ...], msgspec.Meta(min_length=1)] = (404, 410)
    ready: Ready | None = None

    def __post_init__(self) -> None:
        problems = [*_place_problems(self), *_pointer_problems(self)]
        problems += [*_body_problems(self), *_header_problems(self)]
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def place(self) -> str:
        """The declared URL: of the resource, or of its collection."""
        return self.url or self.collection or ""


def _place_problems(resource: HttpResource) -> Iterator[str]:
    if (resource.url is None) == (resource.collection is None):
        yield "exactly one of `url` and `collection` must be given"
    urls = {"url": resource.url, "collection": resource.collection, "import": resource.import_}
    usable = True
    for name, url in urls.items():
        if url is not None and (wrong := places.problem(url)):
            usable = False
            yield f"`{name}` {wrong}"
    if resource.url is not None:
        for name in ("match", "next", "import_"):
            if getattr(resource, name) is not None:
                yield f"`{name.rstrip('_')}` is only for a `collection`"
    if resource.collection is not None and resource.create == "put":
        yield "`create` must be `post` in a `collection`, whose server chooses the URL"
    if not usable or not resource.place:
        return
    if resource.import_ is not None and places.origin(resource.import_) != places.origin(resource.place):
        yield "`import` must be a URL of the same server as `collection`"
    open_to_readers = resource.place.startswith("http://") and not is_loopback(places.host(resource.place))
    if open_to_readers and (resource.credentials is not None or resource.secrets):
        name = "credentials" if resource.credentials is not None else "secrets"
        yield f"`{name}` would be sent without encryption: use https, or an address on this machine"


def _pointer_problems(resource: HttpResource) -> Iterator[str]:
    given: list[tuple[str, str]] = [("id", resource.id)]
    given += [("items", resource.items)] if resource.items else []
    given += [(name, text) for name in ("match", "next") if (text := getattr(resource, name)) is not None]
    given += [("immutable", text) for text in resource.immutable]
    given += [("secrets", text) for text in resource.secrets]
    given += [("ready.field", resource.ready.field)] if resource.ready is not None else []
    for name, text in given:
        if not is_pointer(text):
            yield f"`{name}` must be a JSON pointer such as /status/phase, not {text[:80]!r}"
    match = resource.match
    if match is not None and is_pointer(match):
        value = at(resource.body, match)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            yield f"`body` must have text or a whole number at {match}, which `match` names"
    for text in resource.secrets:
        yield from _secret_problems(resource, text)


def _secret_problems(resource: HttpResource, pointer: str) -> Iterator[str]:
    if not is_pointer(pointer):
        return
    if at(resource.body, pointer) is not MISSING:
        yield f"`body` has a value at {pointer}, where `secrets` has one as well"
    value: Any = resource.body
    for part in parts_of(pointer)[:-1]:
        value = value.get(part, {})
        if not isinstance(value, dict):
            yield f"`secrets` has {pointer}, which does not lead through objects of `body`"
            return
    for other in resource.secrets:
        if other != pointer and f"{other}/".startswith(f"{pointer}/"):
            yield f"`secrets` has {other} within {pointer}"


def _body_problems(resource: HttpResource) -> Iterator[str]:
    yield from _value_problems(resource.body, "", 0)
    try:
        size = len(msgspec.json.encode(resource.body))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError):
        yield "`body` must be plain JSON"
        return
    if size > _MOST_BODY:
        yield f"`body` has {size:,} bytes; at most {_MOST_BODY:,} are allowed"
    if resource.ready is not None and is_pointer(resource.ready.field):
        if any(value in resource.ready.failed for value in resource.ready.in_):
            yield "`ready` has the same value in `in` and `failed`"
        if any(within(resource.ready.field, pointer) for pointer in resource.secrets):
            yield "`ready.field` must not be a secret"


def _value_problems(value: Any, pointer: str, depth: int) -> Iterator[str]:
    if depth > _MOST_DEPTH:
        yield f"`body` is nested more than {_MOST_DEPTH} levels deep"
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str) or not key or not key.isprintable() or len(key) > 200:
                yield f"`body{pointer}` has a key that is empty, longer than 200 characters or not printable"
            else:
                yield from _value_problems(inner, f"{pointer}/{escaped(key)}", depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _value_problems(inner, f"{pointer}/{number}", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"`body{pointer}` is not a number of JSON"


def _header_problems(resource: HttpResource) -> Iterator[str]:
    for name, value in resource.headers.items():
        if not _TOKEN.fullmatch(name):
            yield f"`headers` has the invalid name {name[:80]!r}"
        elif name.lower() in _OWN_HEADERS:
            yield f"`headers` must not have {name}, which Lehr sets"
        if not _VALUE.fullmatch(value) or len(value) > 1000:
            yield f"`headers` has a value of {name[:80]!r} that is empty, too long or has control characters"


def _claims(resource: HttpResource) -> Iterator[str]:
    place = places.canonical(resource.place)
    if resource.url is not None:
        yield f"http:{place}"
    elif resource.match is not None:
        yield f"http:{place}#{resource.match}={at(resource.body, resource.match)}"
    if resource.import_ is not None:
        yield f"http:{places.canonical(resource.import_)}"


TYPES = (AssetType(HTTP_RESOURCE, HttpResource, claims=_claims),)
