"""Programs of other people that tests run, from packages of the operating system."""

from __future__ import annotations

import os
import shutil

import pytest


def installed(name: str) -> str:
    """Path of a program. Without it, the test that asks is skipped."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"NO {name.upper()}: nothing real was tested here; install the package {name}")
    return found
