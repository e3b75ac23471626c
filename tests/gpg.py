"""Keyrings of GnuPG, of a test's own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

needs_gpg = pytest.mark.skipif(shutil.which("gpg") is None, reason="there is no gpg")


class Keyring:
    """A keyring of somebody, in the directory `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(mode=0o700)

    def run(self, *arguments: str) -> str:
        """What `gpg` prints."""
        command = ["gpg", "--homedir", str(self.home), "--batch", "--no-tty", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def key(self, name: str, *, encrypts: bool = False) -> str:
        """Make a key, which signs, or encrypts as well; returns its fingerprint."""
        kind = ("default", "default") if encrypts else ("ed25519", "sign")
        self.run("--passphrase", "", "--quick-gen-key", f"{name}@example.org", *kind, "never")
        lines = self.run("--with-colons", "--list-keys", f"{name}@example.org").splitlines()
        return next(line.split(":")[9] for line in lines if line.startswith("fpr"))

    def public(self, fingerprint: str) -> str:
        """The key as text, to be given to others."""
        return self.run("--armor", "--export", fingerprint)


@contextlib.contextmanager
def keyring(folders: pytest.TempPathFactory) -> Iterator[Keyring]:
    """A new keyring, whose agent is ended with it. Its path is short: the agent's socket lies there."""
    found = Keyring(folders.getbasetemp() / f"gpg{os.urandom(2).hex()}")
    yield found
    subprocess.run(["gpgconf", "--homedir", str(found.home), "--kill", "all"], check=False)
