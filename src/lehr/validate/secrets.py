"""Intent must not hold secrets: all its readers would have them, and so would every store, log and backup."""

from __future__ import annotations

import enum
import functools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from lehr.base.diagnostics import Diagnostic
from lehr.base.pointers import escaped
from lehr.model.asset import Asset
from lehr.sdk.validator import NotSecret
from lehr.validate.proposal import AssetView

_FILE = "lehr.yaml"

_FORMATS: tuple[tuple[str, str, str], ...] = (
    ("PRIVATE KEY", r"-----BEGIN [A-Z ]*PRIVATE KEY", "a private key"),
    (
        "LS0tLS1CRUdJTi",
        r"LS0tLS1CRUdJTi[\w+/]{0,40}(UFJJVkFURSBLRV|BSSVZBVEUgS0VZ|QUklWQVRFIEtFW)",
        "a private key in base64",
    ),
    ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{20}", "an age private key"),
    ("AKIA", r"\bAKIA[0-9A-Z]{16}\b", "an AWS access key"),
    ("ASIA", r"\bASIA[0-9A-Z]{16}\b", "an AWS access key"),
    ("AIza", r"\bAIza[\w-]{35}\b", "a Google API key"),
    ("ghp_", r"\bghp_[0-9A-Za-z]{36}", "a GitHub token"),
    ("gho_", r"\bgho_[0-9A-Za-z]{36}", "a GitHub token"),
    ("ghs_", r"\bghs_[0-9A-Za-z]{36}", "a GitHub token"),
    ("ghu_", r"\bghu_[0-9A-Za-z]{36}", "a GitHub token"),
    ("github_pat_", r"\bgithub_pat_\w{22}", "a GitHub token"),
    ("glpat-", r"\bglpat-[\w-]{20}", "a GitLab token"),
    ("xox", r"\bxox[abeoprs]-[0-9A-Za-z-]{10}", "a Slack token"),
    ("hooks.slack.com", r"hooks\.slack\.com/services/T\w+/B\w+/\w{16}", "a Slack webhook"),
    ("_live_", r"\b[rs]k_live_[0-9A-Za-z]{16}", "a Stripe key"),
    ("npm_", r"\bnpm_[0-9A-Za-z]{36}", "an npm token"),
    ("sk-ant-", r"\bsk-ant-[\w-]{20}", "an Anthropic key"),
    ("eyJ", r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10}", "a JSON web token"),
    ("://", r"\b[a-z][a-z0-9+.-]*://[^\s/:@$\"'{}<>]*:[^\s/:@$\"'{}<>]+@", "a URL with a password"),
)
"""For each form: a text that it contains, its pattern, and its name."""

_PASSWORDS = ("password", "passwd", "passphrase", "pwd")
_KEYS = ("secret", "token", "api_key", "apikey", "access_key", "secret_key", "private_key", "credential")

_REFERENCE = re.compile(r"(env|file|age|sops|vault|secret|ref|op)[:+]|[$/{<%]|\.\.?/")
"""Beginning of a value that names the place of the secret instead of holding it."""

_WORD = re.compile(r"[0-9A-Za-z+/_=-]{32,}")
_LONGEST = 128

_RUN = b"x" * 16
_RUNS = bytes(120 if chr(byte).isalnum() or chr(byte) in "+_-" else 32 for byte in range(128)) + b" " * 128
"""Maps the characters of keys and tokens to `x`: anything worth a closer look then contains a `_RUN`."""

_BITS_PER_CHARACTER = 4.3
"""English text and names have fewer; 32 random letters and digits have 4.5 or more."""

_PUBLIC = re.compile(
    r"-----BEGIN (?P<kind>(?![A-Z ]*PRIVATE)[A-Z ]+)-----.*?-----END (?P=kind)-----"
    r"|\b(?:ssh-[a-z0-9]+|ecdsa-[a-z0-9-]+) [0-9A-Za-z+/=]+|\bsha\d+[-:=][\w+/=-]+",
    re.DOTALL,
)
"""Certificates, public keys and digests look as random as secrets do."""

_OPAQUE = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[\w+/=.~-]{16,}")
"""Neither a name nor a sentence."""

_PUBLIC_FIELDS = re.compile(
    r"(base64|digest|hash|checksum|integrity|signature|fingerprint|public_?key|certificate|cert|uri|url)$"
)


def value_looks_secret(view: AssetView) -> Iterator[Diagnostic]:
    """VAL041: no value looks like a secret. Neither the value nor its line is shown."""
    asset = view.change.after
    if asset is None or not _may_hold_secrets(asset.body):
        return
    document = asset.document()
    for top in ("payload", "addons"):
        for pointer, key, text in _texts(document[top], f"/{top}", top):
            found = _looks_like(key, text)
            if found is not None and not _is_allowed(view.limits.not_secret, asset, pointer):
                yield Diagnostic(
                    code="VAL041",
                    what=f"`{pointer}` of `{asset.id}` looks like {found}",
                    why="everyone who can read intent would see it, as would every stored copy",
                    fix="change the secret, which is now known; keep the new one with `lehr secret encrypt` "
                    "and refer to it, where the type takes `{secret: ...}`; if it is not a secret, "
                    f"write `not_secret: [{{asset: {asset.id}, field: {pointer}, reason: WHY}}]` in {_FILE}",
                    subject=asset.id,
                    at=view.place(asset, pointer),
                    confidential=True,
                )


def _may_hold_secrets(body: bytes) -> bool:
    """Whether a closer look is worthwhile. Most assets are quickly found to hold no secrets."""
    if b"://" in body or _RUN in body.translate(_RUNS):
        return True
    lower = body.lower()
    return b"pass" in lower or b"pwd" in lower


def secrets_in(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Paths into plain data at which something looks like a secret, each with what it looks like."""
    for name, value in data.items():
        for path, key, text in _texts(value, escaped(name), name):
            if (found := _looks_like(key, text)) is not None:
                yield path, found


_PATTERNS = tuple((mark, re.compile(pattern), name) for mark, pattern, name in _FORMATS)
_MASKED = re.compile("|".join(rf"{pattern}[\w+/=.\\-]*" for _mark, pattern, _name in _FORMATS))
"""With the text after it: a form may match only a part of the secret."""


def known_secret(text: str) -> str | None:
    """The known form of secret that `text` contains (`an age private key`); None for none."""
    found = (name for mark, pattern, name in _PATTERNS if mark in text and pattern.search(text))
    return next(found, None)


def masked(text: str) -> str:
    """`text`, for a message, without anything that looks like a secret of a known form."""
    if known_secret(text) is None:
        return text
    return _MASKED.sub("(a secret)", text)


def _texts(value: Any, pointer: str, key: str) -> Iterator[tuple[str, str, str]]:
    """Every string: its place, the key that it is under, and the string."""
    if isinstance(value, str):
        yield pointer, key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, f"{pointer}/{escaped(name)}", name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{pointer}/{index}", key)


def _looks_like(key: str, text: str) -> str | None:
    """The kind of secret that it looks like; None for none."""
    kind = _kind(key)
    if kind is _Kind.PASSWORD and text and not _REFERENCE.match(text):
        return "a password"
    if not _may_hold_secrets(text.encode(errors="replace")):
        return None
    known = known_secret(text)
    if known is not None:
        return known
    if kind is _Kind.KEY and _OPAQUE.fullmatch(text) and not _REFERENCE.match(text):
        return "a secret, by the name of its field"
    if kind is not _Kind.PUBLIC and any(map(_is_random, _WORD.findall(text))):
        # Checked again without public parts: these are rare, and removing them is slow.
        return "a random token" if any(map(_is_random, _WORD.findall(_PUBLIC.sub(" ", text)))) else None
    return None


class _Kind(enum.Enum):
    """The expected content of a field, by its name."""

    PASSWORD = enum.auto()
    KEY = enum.auto()
    PUBLIC = enum.auto()
    OTHER = enum.auto()


@functools.lru_cache(maxsize=4096)
def _kind(key: str) -> _Kind:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower().replace("-", "_").rstrip("s")
    if name.endswith(_PASSWORDS):
        return _Kind.PASSWORD
    if name.endswith(_KEYS):
        return _Kind.KEY
    return _Kind.PUBLIC if _PUBLIC_FIELDS.search(name) else _Kind.OTHER


def _is_random(word: str) -> bool:
    # A path or a name has a part of its own every few characters.
    if len(word) > _LONGEST or sum(map(word.count, "/_-")) * 16 > len(word):
        return False
    if not all(re.search(kind, word) for kind in ("[a-z]", "[A-Z]", "[0-9]")):
        return False
    shares = [count / len(word) for count in Counter(word).values()]
    return -sum(share * math.log2(share) for share in shares) >= _BITS_PER_CHARACTER


def _is_allowed(allowed: tuple[NotSecret, ...], asset: Asset, pointer: str) -> bool:
    return any(fnmatchcase(asset.id, item.asset) and fnmatchcase(pointer, item.field) for item in allowed)
