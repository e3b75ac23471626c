"""Starts the fake provider as a program."""

from __future__ import annotations

import sys
from pathlib import Path

from lehr.plugins.plugin_process import Program

_PROVIDER = Path(__file__).with_name("fake_provider.py")


def binary(folder: Path, name: str = "terraform-provider-fake") -> Path:
    """An executable that is the provider."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexec {sys.executable} {_PROVIDER}\n")
    path.chmod(0o755)
    return path


def program(folder: Path, protocol: int = 6, **variables: str) -> Program:
    """The provider as a program to start; `variables` are those of `fake_provider`."""
    return Program((str(binary(folder)),), {"FAKE_PROTOCOL": str(protocol), **variables})
