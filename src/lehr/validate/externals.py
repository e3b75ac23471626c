"""External things named in intent are as fixed as intent itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import SplitResult, parse_qs, urlsplit

from lehr.base.diagnostics import Diagnostic
from lehr.model.types import External
from lehr.validate.proposal import AssetView

_DIGITS = {"sha256": 64, "sha384": 96, "sha512": 128, "blake2b": 128}
"""Hexadecimal digits of a digest, by algorithm. Older ones can be forged."""

_VERSION_PARAMETERS = ("versionid", "generation")
"""Parameters by which object stores name one version of an object, in lower case."""

_COMMIT = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-f]{40}|[0-9a-f]{64})(?![0-9A-Za-z])")
"""A git commit, in full."""

_MOVING = re.compile(r"(?:[:@/#=])(latest|main|master|trunk|develop|stable|edge|nightly|HEAD)(?![\w.-])")
_IMAGE_DIGEST = re.compile(r"@(\w+:[0-9a-fA-F]+)$")
_UNSEEN = re.compile(r"[\s\x00-\x1f\x7f]")


def external_can_change(view: AssetView) -> Iterator[Diagnostic]:
    """VAL040: an asset names external things by digest, commit or version."""
    asset = view.change.after
    if asset is None:
        return
    for pointer, named in view.registry.externals(asset):
        why = _why_not_fixed(named)
        if why is not None:
            yield Diagnostic(
                code="VAL040",
                # Not the URI itself: it may contain a password, or a signature that works like one.
                what=f"the target of `{pointer}` of `{asset.id}` can change",
                why=why,
                fix="give its digest (`sha256:...`), or a URI that names one commit or object version",
                subject=asset.id,
                at=view.place(asset, pointer),
            )


def _why_not_fixed(named: External) -> str | None:
    """Why the content behind the name may change; None if it cannot."""
    if not named.uri or _UNSEEN.search(named.uri):
        return "a URI is not empty, and has no spaces or control characters"
    if named.digest:
        return _digest_problem(named.digest)
    image = _IMAGE_DIGEST.search(named.uri)
    if image is not None:
        return _digest_problem(image[1])
    try:
        parts = urlsplit(named.uri)
    except ValueError:
        return "it is not a URI"
    if parts.scheme == "http":
        return "plain http can be modified in transit, and there is no digest to detect it"
    if _names_a_version(parts):
        return None
    moving = _MOVING.search(named.uri)
    if moving is not None:
        return f"`{moving[1]}` may be something else tomorrow"
    return "nothing in it identifies a version is meant; a name or a tag can be moved"


def _digest_problem(digest: object) -> str | None:
    algorithm, _, digits = str(digest).partition(":")
    length = _DIGITS.get(algorithm)
    if length is None:
        return f"`{algorithm}` is not a reliable digest algorithm: {', '.join(_DIGITS)}"
    if not re.fullmatch(rf"[0-9a-f]{{{length}}}", digits):
        return f"a {algorithm} digest has {length} hexadecimal digits, in lower case"
    return None


def _names_a_version(parts: SplitResult) -> bool:
    parameters = {name.lower(): values for name, values in parse_qs(parts.query).items()}
    if any(_is_version(value) for name in _VERSION_PARAMETERS for value in parameters.get(name, ())):
        return True
    # A host may be named after a commit, but its content may still change.
    return _COMMIT.search(f"{parts.path}?{parts.query}#{parts.fragment}") is not None


def _is_version(text: str) -> bool:
    return text.lower() not in ("", "null", "latest")
