"""The meaning of request headers: which responses a client accepts, and which server it asks. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection


def accepts(header: str, offered: Collection[str]) -> bool:
    """Whether an `Accept` header allows one of the offered media types."""
    given = _qualities(header)
    return not given or any(_quality(given, media) > 0 for media in offered)


def takes_gzip(header: str) -> bool:
    """Whether an `Accept-Encoding` header names gzip."""
    return _qualities(header).get("gzip", 0.0) > 0


def knows(header: str, tag: str) -> bool:
    """Whether an `If-None-Match` header has the weak entity tag `tag` (without its quotes)."""
    return any(item.strip().removeprefix("W/") == f'"{tag}"' for item in header.split(","))


def host_is_known(header: str, names: Collection[str]) -> bool:
    """Whether a `Host` header holds an address, localhost, or one of `names`.

    Invariant: a foreign page whose name resolves to this machine (DNS rebinding) cannot read anything. Its
        browser sends that name; a page under an address comes from that address.
    """
    host = header.strip().lower()
    if not host.endswith("]"):
        host = host.rpartition(":")[0] if ":" in host else host
    if host == "localhost" or host.endswith(".localhost") or host in names:
        return True
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _qualities(header: str) -> dict[str, float]:
    """Named values with their quality: 0 is not acceptable. Skips parts that cannot be parsed."""
    found = {}
    for item in header.split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        if not name:
            continue
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            found[name] = float(quality)
        except ValueError:
            found[name] = 1.0
    return found


def _quality(given: dict[str, float], media: str) -> float:
    """The quality of the most specific match."""
    kind = media.partition("/")[0]
    for name in (media, f"{kind}/*", "*/*"):
        if name in given:
            return given[name]
    return 0.0
