"""Ids for what `AssetPlugin.discover` finds: made from names, valid, and each once."""

from __future__ import annotations

import re

from lehr.base.digest import digest_bytes, short

_LONGEST = 150  # characters: leaves room for what people put before it
_FOREIGN = re.compile(r"[^A-Za-z0-9._:@-]+")


class Ids:
    """Proposes ids, none of them twice."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def propose(self, name: str) -> str:
        """An asset id that reads like `name`, whose slashes divide it.

        Other characters become hyphens; a name that is long or taken gets a suffix.
        """
        parts = (_FOREIGN.sub("-", part).strip("-").lstrip(".:@-") for part in name.split("/"))
        id = "/".join(part for part in parts if part) or "unnamed"
        if len(id) > _LONGEST:
            id = f"{id[:_LONGEST].rstrip('/')}-{short(digest_bytes(name.encode()))}"
        proposed, number = id, 1
        while proposed in self._given:
            number += 1
            proposed = f"{id}-{number}"
        self._given.add(proposed)
        return proposed
