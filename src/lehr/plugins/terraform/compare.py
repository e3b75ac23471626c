"""A provider's plan as Lehr's diff, with the effects of a push; and the outputs of a resource. Pure."""

from __future__ import annotations

import base64
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from lehr.base.digest import canonical, digest_bytes, short
from lehr.base.text import one_line
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, bounded
from lehr.plugins.terraform.differences import Difference, differences
from lehr.plugins.terraform.errors import described
from lehr.plugins.terraform.provider import UNKNOWN, Block, Number, Path, Planned, Typed, Value
from lehr.plugins.terraform.values.canonical import has_unknown
from lehr.plugins.terraform.values.secret_paths import secret_texts
from lehr.sdk.secrets import DIFFERS, HIDDEN, NOTHING_HIDDEN, Hidden, SecretValue

_MOST_CHANGES = 30
_MOST_VALUE = 120
_MOST_PATH = 200
_MOST_NOTES = 3
_MOST_NOTE = 200
_MOST_OUTPUT = 1024
_MOST_OUTPUTS = 6000
_FIRST = ("id", "arn", "url", "name")
_REPLACED = "destroyed and created again"

KNOWN_LATER = "known after the push"
"""A diff's value for one that only the provider will know."""

SecretsIn = Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]
"""Paths into plain data at which something looks like a secret, each with what it looks like."""


class Secrecy(NamedTuple):
    """Secrets that must not be shown.

    Attributes:
        hidden: hides known secrets in texts.
        paths: where intent has secrets, whatever the schema has about them.
    """

    hidden: Hidden = NOTHING_HIDDEN
    paths: frozenset[Path] = frozenset()

    def covers(self, path: Path) -> bool:
        """Whether a path leads to a secret of intent, or to something that holds one."""
        # Without indexes: a block that is written as a mapping is the first of a list.
        names = _names(path)
        return any(
            names[: len(known)] == known or known[: len(names)] == names for known in map(_names, self.paths)
        )


NO_SECRECY = Secrecy()


def compared(
    block: Block, prior: Value, planned: Planned, secrecy: Secrecy = NO_SECRECY, *, tainted: str = ""
) -> Diff:
    """The diff of a resource that should exist.

    Args:
        prior: the resource as it is; None for none.
        tainted: why an existing resource has to be replaced whatever it looks like; empty if it does not.
    """
    found = [*differences(block, prior, planned.value)]
    notes = _notes(planned, secrecy)
    if prior is None:
        set_ = (item for item in found if not has_unknown(item.after))
        changes = [Change("resource", "present", None), *(_change(item, secrecy) for item in set_)]
        return Diff(bounded(changes, "more", _MOST_CHANGES), notes=notes)
    replaced = bool(tainted) or is_replaced(found, planned)
    if not found and not replaced:
        return msgspec.structs.replace(NO_DIFF, notes=notes)
    changes = [_change(item, secrecy) for item in found]
    if replaced:
        changes.insert(0, Change("resource", _REPLACED, tainted or "present"))
    effects = Effects(destructive=replaced, disruptive=replaced)
    return Diff(bounded(changes, "more", _MOST_CHANGES), effects, notes=notes)


def is_replaced(found: Iterable[Difference], planned: Planned) -> bool:
    """Whether a provider has to replace a resource: what it names in `replaces` differs."""
    return any(
        path[: len(item.path)] == item.path or item.path[: len(path)] == path
        for item in found
        for path in planned.replaces
    )


def secrecy_of(
    block: Block, secrets: Iterable[SecretValue], paths: Iterable[Path], *values: Value
) -> Secrecy:
    """Hides secrets of intent, and the sensitive texts of these values."""
    held = [text for value in values if value is not None for text in secret_texts(block, value)]
    known = [*(secret.content() for secret in secrets), *(text.encode() for text in held)]
    return Secrecy(Hidden(SecretValue(spelt) for one in known for spelt in _spellings(one)), frozenset(paths))


def outputs_of(
    block: Block, value: Value, secrecy: Secrecy = NO_SECRECY, secrets_in: SecretsIn = lambda _data: ()
) -> dict[str, Any]:
    """The outputs of a resource or data source: its id, and its attributes as far as they may be public.

    Left out are sensitive attributes, secrets of intent, what looks like a secret, and what is too long.
    """
    if value is None:
        return {}
    known: dict[str, Any] = {}
    size = 0
    for attribute in sorted(
        block.attributes, key=lambda item: (item.name not in _FIRST, not item.computed, item.name)
    ):
        name, item = attribute.name, value.get(attribute.name)
        if attribute.sensitive or attribute.write_only or attribute.nested or secrecy.covers((name,)):
            continue
        if item is None or has_unknown(item):
            continue
        plain = _plain(item)
        encoded = canonical({name: plain})
        text = encoded.decode()
        if len(encoded) > _MOST_OUTPUT or size + len(encoded) > _MOST_OUTPUTS:
            continue
        if secrecy.hidden.shown(text) != text or any(True for _found in secrets_in({name: plain})):
            continue
        known[name] = plain
        size += len(encoded)
    id = known.get("id")
    return {"attributes": known} | ({"id": id} if isinstance(id, str) else {})


def shown(value: Value, hidden: Hidden = NOTHING_HIDDEN) -> Any:
    """A value as a diff has it: short, and without a known secret."""
    if value is UNKNOWN:
        return KNOWN_LATER
    plain = _plain(value)
    encoded = msgspec.json.encode(plain).decode()
    text = plain if isinstance(plain, str) else encoded
    if hidden.shown(text) != text or hidden.shown(encoded) != encoded:
        return HIDDEN
    if len(encoded) <= _MOST_VALUE:
        return plain
    kinds = {"dict": "a mapping", "list": "a list", "str": "text"}
    kind = kinds.get(type(plain).__name__, "a number")
    return f"{kind} of {len(encoded):,} characters ({short(digest_bytes(canonical(plain)))})"


def _spellings(secret: bytes) -> Iterator[bytes]:
    """A secret as it is, and as messages of APIs may quote it."""
    yield secret
    bare = secret.strip()
    yield base64.b64encode(bare).rstrip(b"=")
    text = bare.decode(errors="replace")
    yield msgspec.json.encode(text)[1:-1]
    yield urllib.parse.quote(text, safe="").encode()
    yield urllib.parse.quote_plus(text).encode()


def _names(path: Path) -> Path:
    return tuple(part for part in path if isinstance(part, str))


def _change(item: Difference, secrecy: Secrecy) -> Change:
    path = _path(item.path)
    if item.sensitive or secrecy.covers(item.path):
        after = None if item.after is None else HIDDEN
        return Change(path, after, None if item.before is None else DIFFERS)
    before, after = shown(item.before, secrecy.hidden), shown(item.after, secrecy.hidden)
    if before == after:
        before = f"{before} (another value)"
    return Change(path, after, before)


def _path(path: Path) -> str:
    text = "/".join(str(part).replace("/", "~1").strip() or "''" for part in path)
    if text.isprintable() and len(text) <= _MOST_PATH:
        return text
    printable = "".join(one if one.isprintable() else "?" for one in text[:_MOST_PATH])
    return f"{printable}... ({short(digest_bytes(text.encode(errors='replace')))})"


def _notes(planned: Planned, secrecy: Secrecy) -> tuple[str, ...]:
    texts = (f"provider warns: {described([item], secrecy.hidden)}" for item in planned.warnings)
    return tuple(one_line(text)[:_MOST_NOTE] for text in [*dict.fromkeys(texts)][:_MOST_NOTES])


def _plain(value: Value) -> Any:
    """As JSON data."""
    if value is UNKNOWN:
        return KNOWN_LATER
    if isinstance(value, Number):
        return value.digits
    if isinstance(value, Typed):
        return _plain(value.value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
