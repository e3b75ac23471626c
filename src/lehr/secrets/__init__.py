"""Secrets: read where intent only refers to them, and kept encrypted in the workspace.

In: references (`lehr.model.secret`), and what holds the secrets: Lehr's environment, files of the
machine, files of the workspace that are encrypted with age or SOPS. Out: values that show themselves to
nobody (`lehr.sdk.secrets`), and encrypted files (`encrypted_files`).

Architecture invariants:

* Plain text is in memory, and in what keeps it on purpose: never in the state folder, a temporary file
  on a disk, an argument of a program, a message, an exception or a log.
* An encrypted file is read by the digest of its content. Whatever the workspace has become since, a
  reference means the file of the revision that it comes from.
* Nothing is remembered between two reads: a key that is taken away is gone at once.
"""

from __future__ import annotations

from lehr.secrets.identities import IDENTITY, IDENTITY_FILE, IDENTITY_NAME
from lehr.secrets.reader import SecretReader

__all__ = ["IDENTITY", "IDENTITY_FILE", "IDENTITY_NAME", "SecretReader"]
