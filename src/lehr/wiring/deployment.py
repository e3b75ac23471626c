"""Where things are on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from lehr.model.selector import Selector

STATE_FILE = "state.sqlite"
MEMO_FILE = "generate/memo.sqlite"


def plugins_file() -> Path | None:
    """The file of plugins that the environment names, for all commands; None for none."""
    named = os.environ.get("LEHR_PLUGINS")
    return Path(named).absolute() if named else None


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that are not intent: where things are on this machine.

    Attributes:
        location: the source, as `lehr.sources.open_source` reads it.
        state: folder for everything that Lehr itself keeps.
        base: folder that relative paths in intent are relative to.
        kind, branch, path: of the source, if `location` does not set them.
        poll: maximum seconds between two checks of the source; None for the kind's default.
        lender: another state folder, which is only read: declared sources that it has are not fetched.
        exact: a commit that is checked out without a branch may be read, once.
        only: the assets to enforce, as in `lehr.sdk.runtime.Runtime`.
        signed_by: file of public keys, one of which must have signed the newest commit; None to require no
            signature. It is not intent: anyone who may change intent could change it.
        metrics: file that configures sources of metrics; None for none. It refers to credentials.
        selections: addresses of target selections, by the names that policies use.
        selection_tokens: files of the tokens for some of these, by the same names.
        plugins: file that configures plugins of other processes; None for none. It names programs.
        retain, retain_seconds: newest incarnations, and age of what a run does not prune; 0 seconds to prune
            nothing.
    """

    location: str
    state: Path
    base: Path
    kind: Literal["git", "directory"] | None = None
    branch: str | None = None
    path: str = ""
    poll: float | None = None
    lender: Path | None = None
    signed_by: Path | None = None
    metrics: Path | None = None
    selections: dict[str, str] = {}
    selection_tokens: dict[str, Path] = {}
    plugins: Path | None = None
    retain: int = 1000
    retain_seconds: float = 90 * 86_400.0
    exact: bool = False
    only: Selector | None = None
