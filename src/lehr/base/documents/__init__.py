"""Strict loading of YAML, JSON and TOML.

In: a file's name and bytes. Out: plain data (dict, list, str, int, float, bool, None) that
survives a round trip through any of the three formats, or diagnostics with line and column.

* One set of rules for the three formats: keys are strings and occur once, text is UTF-8,
  numbers are finite and fit into 64 bits, depth and size are bounded.
* YAML follows the core schema of YAML 1.2: `no`, `on`, `1:20` and `2024-01-01` are strings.
* Positions cost nothing until they are needed: a document finds them by reading its text again.

Architecture invariants: nothing here raises for any bytes; nothing here knows of our domain;
the work is bounded by the size of the file (no alias bombs, no recursion over input).
"""

from __future__ import annotations

from lehr.base.documents.document import Document, Documents
from lehr.base.documents.load import SUFFIXES, load
from lehr.base.documents.text import MAX_BYTES, MAX_DEPTH, MAX_PROBLEMS

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_PROBLEMS", "SUFFIXES", "Document", "Documents", "load"]
