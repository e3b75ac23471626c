"""Secrets in texts of production, which no author of intent has chosen.

Validation looks at values of intent, and less closely, because their authors have.
"""

from __future__ import annotations

import re
from itertools import chain

from lehr.validate.secrets import known_secret, secrets_in

_ASSIGNED = re.compile(
    r"""(?<![\w.-])["']?([\w.-]*(?:pass|pwd|secret|token|key|credential)[\w.-]*)["']?[ \t]*[:=][ \t]*"""
    r"""["']?([^"'\s,;}\]]+)""",
    re.IGNORECASE,
)
"""A part of a line that assigns a value to a name that suggests a secret."""

_DIRECTIVE = re.compile(
    r"^[ \t]*(?:requirepass|masterauth|[\w.-]*(?:password|passwd|passphrase|pwd))[ \t]+[^\s;]+[ \t]*;?\r?$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that sets a password without `=`, as in the configuration of Redis."""

MOST_SEARCHED = 4000
"""Characters of a line in which assignments are looked for. The time can grow with their square."""


def revealed_secret(name: str, text: str) -> str | None:
    """The kind of secret in the text under `name`, or in what a line of it assigns; None for none."""
    if (known := known_secret(text)) is not None:
        return known
    if _DIRECTIVE.search(text):
        return "a password"
    assigned = (pair for line in text.split("\n") for pair in _ASSIGNED.findall(line, 0, MOST_SEARCHED))
    for key, value in chain([(name, text)], assigned):
        for _path, found in secrets_in({key: value}):
            return found
    return None
