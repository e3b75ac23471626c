"""The handle of a resource, which Lehr keeps between calls. Pure. It holds no secret."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lehr.base.digest import digest, short
from lehr.model.secret import Secret


class ResourceHandle(msgspec.Struct, frozen=True, omit_defaults=True):
    """A handle.

    Attributes:
        url: where the server has put the resource of a collection; empty for one that intent names.
        sent: which references to secrets were sent last, where the API does not return these secrets.
    """

    url: str = ""
    sent: str = ""

    def text(self) -> str:
        """As Lehr keeps it; empty for nothing to keep."""
        return msgspec.json.encode(self).decode() if self.url or self.sent else ""


def parse(text: str) -> ResourceHandle:
    """The handle that was kept as `text`; an empty one for text that is not a handle."""
    try:
        return msgspec.json.decode(text, type=ResourceHandle) if text else ResourceHandle()
    except msgspec.MsgspecError:
        return ResourceHandle()


def references(secrets: Mapping[str, Secret]) -> str:
    """Identifies where secrets are kept, and in which version. It does not depend on their values."""
    kept = {pointer: [item.secret, item.version, item.digest] for pointer, item in secrets.items()}
    return short(digest(kept)) if kept else ""
