"""The variables that programs of intent get from Lehr's own environment, and no others."""

from __future__ import annotations

import os

_DEFAULTS = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/",
    "LANG": "C.UTF-8",
}


def small_environment() -> dict[str, str]:
    """`PATH`, `HOME` and `LANG`, as Lehr has them."""
    return {name: os.environ.get(name, value) for name, value in _DEFAULTS.items()}
