"""What a request says of the answers that it takes."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection


def accepts(header: str, offered: Collection[str]) -> bool:
    """Whether an `Accept` header lets one of the media types through that are offered."""
    given = _qualities(header)
    return not given or any(_quality(given, media) > 0 for media in offered)


def takes_gzip(header: str) -> bool:
    """Whether an `Accept-Encoding` header names gzip."""
    return _qualities(header).get("gzip", 0.0) > 0


def knows(header: str, tag: str) -> bool:
    """Whether an `If-None-Match` header has the weak entity tag `tag` (without its quotes)."""
    return any(item.strip().removeprefix("W/") == f'"{tag}"' for item in header.split(","))


def host_is_known(header: str, names: Collection[str]) -> bool:
    """Whether a `Host` header says an address, localhost, or one of `names`.

    Invariant: a page from elsewhere whose name has been turned to this machine (DNS rebinding) is read to
    nobody. Its browser sends that name; a page that has an address for its name comes from there.
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
    """What is named, and how much it is wanted: 0 is not at all. What cannot be understood is left out."""
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
    """That of the closest that is named counts."""
    kind = media.partition("/")[0]
    for name in (media, f"{kind}/*", "*/*"):
        if name in given:
            return given[name]
    return 0.0
