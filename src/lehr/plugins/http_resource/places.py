"""URLs of resources. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

_PLAIN = re.compile(r"[!-~]+")
_MOST = 2000
_PORTS = {"http": 80, "https": 443}


def problem(url: str) -> str:
    """Why `url` is not one that can be asked; empty if it is. Does not quote it: it may have a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a valid URL"
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        return "must start with http:// or https:// and a host"
    if parts.username is not None or parts.password is not None:
        return "has a user name or password, which everyone who reads intent would see: use `credentials`"
    if not _PLAIN.fullmatch(url) or len(url) > _MOST or parts.fragment or "#" in url:
        return f"must have no blanks, fragments or non-ASCII characters, and at most {_MOST:,} characters"
    return ""


def host(url: str) -> str:
    """The host of a valid URL."""
    return urlsplit(url).hostname or ""


def origin(url: str) -> str:
    """Scheme, host and port of a valid URL, in one spelling."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or _PORTS.get(parts.scheme, 0)}"


def canonical(url: str) -> str:
    """A valid URL in one spelling, as far as that is known without asking."""
    parts = urlsplit(url)
    return f"{origin(url)}{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"


def linked(collection: str, link: str) -> str | None:
    """The URL that a server names in an answer of `collection`.

    None for another origin: the credentials do not belong there.
    """
    if not _PLAIN.fullmatch(link):
        return None
    try:
        found = urljoin(collection, link)
    except ValueError:
        return None
    found = found.partition("#")[0]
    if problem(found) or origin(found) != origin(collection):
        return None
    return found


def item(collection: str, id: object) -> str | None:
    """The URL of an item of `collection`; None if it has no id that can be part of one.

    Args:
        id: text or a number; text that starts with a slash or a scheme is a URL.
    """
    if isinstance(id, bool) or not isinstance(id, str | int):
        return None
    text = str(id)
    if text.startswith(("/", "http://", "https://")):
        found = linked(collection, text)
        return None if found is None or _path(found) == _path(collection) else found
    if text in ("", ".", ".."):
        return None
    parts = urlsplit(collection)
    path = f"{parts.path.rstrip('/')}/{quote(text, safe='')}"
    found = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
    return None if problem(found) else found


def _path(url: str) -> str:
    return urlsplit(url).path.rstrip("/")
