"""Secrets: read from where intent refers to them, or kept encrypted in the workspace.

In: references (`lehr.model.secret`), and the places that hold secrets: Lehr's environment, files on the
machine, files in the workspace that are encrypted with age or SOPS. Out: values that never print themselves
(`lehr.sdk.secrets`), and encrypted files (`encrypted_files`).

Architecture invariants:

* Plain text exists in memory and in secret stores: never in the state folder, a temporary file on
  disk, a command-line argument, a message, an exception or a log.
* An encrypted file is read by the digest of its content. A reference means the file in the revision that the
  reference comes from, even if the workspace has changed since.
* Nothing is cached between two reads: a key that is removed stops working immediately.
"""

from __future__ import annotations

from lehr.secrets.identities import IDENTITY, IDENTITY_FILE, IDENTITY_NAME
from lehr.secrets.reader import SecretReader

__all__ = ["IDENTITY", "IDENTITY_FILE", "IDENTITY_NAME", "SecretReader"]
