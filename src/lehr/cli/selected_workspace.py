"""The arguments `[DIR] [SELECTOR]` of commands that work on some assets of a workspace."""

from __future__ import annotations

import os
import re

from lehr.model.selector import Selector, parse_selector

_PLACE = re.compile(r"[./~]|[^/:=]+:|git\+")
"""How a path, a URL or `host:path` begins, and a selector does not."""


def location_and_selector(location: str | None, selector: str | None) -> tuple[str, Selector | None]:
    """Which workspace, by default the current folder, and which of its assets: None for all.

    A single argument is a location if it is a folder, or if it is written like a path or URL.

    Raises:
        LehrError: the selector is not valid.
    """
    if location is not None and selector is None and is_selector(location):
        location, selector = None, location
    return location or ".", None if selector is None else parse_selector(selector)


def is_selector(argument: str) -> bool:
    """Whether an argument is a selector: it is not a folder, and not written like a path or URL."""
    if os.path.isdir(argument):
        return False
    return argument.startswith("label:") or not (_PLACE.match(argument) or argument.endswith(".git"))
