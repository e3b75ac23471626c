"""Compares a resource with intent, and computes the effects of a push. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from lehr.base.digest import canonical, digest_bytes, short
from lehr.base.pointers import escaped
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, Goal, bounded
from lehr.plugins.http_resource.fields import MISSING, at, within
from lehr.plugins.http_resource.handle import references
from lehr.plugins.http_resource.payload import HttpResource
from lehr.sdk.secrets import DIFFERS, HIDDEN, NOTHING_HIDDEN, Hidden, SecretValue

LOOK_AGAIN = 5.0
"""Seconds between two looks at a resource that the API still works on."""

_MOST_CHANGES = 30
_MOST_VALUE = 120
_MOST_PATH = 200
_MASK = re.compile(r"[*•]+")


class Intended(NamedTuple):
    """A payload, and the secrets that it refers to.

    Attributes:
        secrets: those of the body, by JSON pointer.
        hidden: hides these and the credentials in texts of the server.
    """

    resource: HttpResource
    secrets: Mapping[str, SecretValue] = {}
    credentials: SecretValue | None = None
    hidden: Hidden = NOTHING_HIDDEN


class Observed(msgspec.Struct, frozen=True):
    """A resource as a GET shows it.

    Attributes:
        url: of the resource; empty for one whose URL is not known.
        document: None if there is no resource.
        etag: a strong one, which identifies this state; empty for none.
    """

    url: str = ""
    document: dict[str, Any] | None = None
    etag: str = ""


class Difference(NamedTuple):
    """A field that differs. `MISSING` for one that is not there."""

    pointer: str
    intended: Any
    observed: Any


def differences(intended: Any, observed: Any, pointer: str = "") -> Iterator[Difference]:
    """The declared fields that differ. Objects are compared field by field, anything else as a whole."""
    if intended and isinstance(intended, dict) and (observed is None or observed is MISSING):
        observed = {}
    if isinstance(intended, dict) and isinstance(observed, dict):
        for key, value in intended.items():
            yield from differences(value, observed.get(key, MISSING), f"{pointer}/{escaped(key)}")
    elif not (intended is None and observed is MISSING) and not same(intended, observed):
        yield Difference(pointer, intended, observed)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def unreadable(intended: Intended, document: Mapping[str, Any]) -> list[str]:
    """Pointers of secrets that the API does not return: they are missing, empty or masked."""
    return [pointer for pointer in intended.secrets if _is_masked(at(document, pointer))]


def compared(intended: Intended, observed: Observed, goal: Goal, sent: str) -> Diff:
    """The diff that the plugin reports.

    Args:
        sent: which references to secrets were sent last, as `handle.references` identifies them.
    """
    resource, document = intended.resource, observed.document
    if goal is not Goal.PRESENT:
        return NO_DIFF if document is None else Diff((Change("resource", None, "present"),))
    if document is None:
        fields = differences(resource.body, {})
        changes = [Change("resource", "present", None), *(_change(item, intended) for item in fields)]
        return Diff(bounded(changes, "more", _MOST_CHANGES))
    found = [*differences(resource.body, document)]
    fixed = [item.pointer for item in found if _is_fixed(item.pointer, resource)]
    changes = [_change(item, intended) for item in found]
    for pointer in _different_secrets(intended, document):
        changes.append(Change(_path(pointer), HIDDEN, DIFFERS))
        fixed += [pointer] if _is_fixed(pointer, resource) else []
    if unreadable(intended, document) and sent != (reference := references(resource.secrets)):
        changes.append(Change("secrets", f"as referred to ({reference})", "not known to have been sent"))
    if fixed:
        changes.insert(0, Change("resource", "deleted and created again", "present"))
    if changes:
        effects = Effects(destructive=bool(fixed), disruptive=bool(fixed))
        return Diff(bounded(changes, "more", _MOST_CHANGES), effects)
    return _unfinished(intended, document)


def is_replaced(diff: Diff) -> bool:
    """Whether a push of `diff` deletes the resource and creates it again."""
    return diff.effects.destructive


def status_of(resource: HttpResource, document: Mapping[str, Any]) -> Any:
    """The value of `ready.field`; `MISSING` for none."""
    return MISSING if resource.ready is None else at(document, resource.ready.field)


def is_ready(resource: HttpResource, document: Mapping[str, Any]) -> bool:
    """Whether the API has finished working on the resource."""
    ready = resource.ready
    return ready is None or any(same(status_of(resource, document), value) for value in ready.in_)


def has_failed(resource: HttpResource, document: Mapping[str, Any]) -> bool:
    """Whether the API has given up."""
    ready = resource.ready
    return ready is not None and any(same(status_of(resource, document), value) for value in ready.failed)


def shown(value: Any, hidden: Hidden = NOTHING_HIDDEN) -> Any:
    """A value as a diff has it: short, and without a known secret."""
    if value is MISSING:
        return None
    encoded = msgspec.json.encode(value).decode()
    text = value if isinstance(value, str) else encoded
    if hidden.shown(text) != text:
        return HIDDEN
    if isinstance(value, dict):
        return f"an object with {len(value)} fields ({_digest(value)})"
    if len(encoded) <= _MOST_VALUE:
        return value
    kind = "a list" if isinstance(value, list) else "text" if isinstance(value, str) else "a number"
    return f"{kind} of {len(encoded):,} characters ({_digest(value)})"


def _unfinished(intended: Intended, document: Mapping[str, Any]) -> Diff:
    """The diff of a resource whose fields are as intended."""
    resource = intended.resource
    if resource.ready is None or is_ready(resource, document):
        return NO_DIFF
    wanted = " or ".join(map(str, resource.ready.in_))[:_MOST_VALUE]
    status = shown(status_of(resource, document), intended.hidden)
    return Diff((Change("ready", wanted, status),), look_again=LOOK_AGAIN)


def _different_secrets(intended: Intended, document: Mapping[str, Any]) -> Iterator[str]:
    for pointer, secret in intended.secrets.items():
        observed = at(document, pointer)
        if _is_masked(observed):
            continue
        known = observed.encode(errors="replace") if isinstance(observed, str) else b""
        if not isinstance(observed, str) or not SecretValue(secret.text().encode()).equals(known):
            yield pointer


def _is_masked(value: Any) -> bool:
    return (
        value is MISSING or value is None or (isinstance(value, str) and bool(_MASK.fullmatch(value or "*")))
    )


def _is_fixed(pointer: str, resource: HttpResource) -> bool:
    return any(within(pointer, fixed) for fixed in resource.immutable)


def _change(item: Difference, intended: Intended) -> Change:
    before, after = shown(item.observed, intended.hidden), shown(item.intended)
    if before == after or (before is None and item.observed is None):
        before = "null" if item.observed is None else f"{before} (another value)"
    return Change(_path(item.pointer), after, before)


def _path(pointer: str) -> str:
    path = f"body{pointer}"
    if path.isprintable() and len(path) <= _MOST_PATH:
        return path
    return f"{path[:_MOST_PATH]}... ({short(digest_bytes(path.encode(errors='replace')))})"


def _digest(value: Any) -> str:
    return short(digest_bytes(canonical(value)))
