"""Diagnostics without secrets: a provider may repeat whatever it was given."""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

import msgspec

from lehr.plugins.terraform.provider import Block, Diagnostic
from lehr.plugins.terraform.values.secret_paths import is_within, sensitive_paths

HIDDEN = "(sensitive)"

SHORTEST = 4
"""Characters of a secret that is hidden by its value; shorter ones are in any text by chance."""


def hidden(text: str, secrets: Iterable[str]) -> str:
    """`text` without any of `secrets`, whether it quotes, escapes or URL-encodes them."""
    for form in sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def redacted(diagnostic: Diagnostic, block: Block, secrets: Iterable[str]) -> Diagnostic:
    """`diagnostic` about a value of `block` as it can be shown.

    Of one that is about a sensitive attribute only the summary is kept, since its detail may describe the
    value in words.
    """
    known = tuple(secrets)
    about = is_within(diagnostic.path, block, sensitive_paths(block))
    return msgspec.structs.replace(
        diagnostic,
        summary=hidden(diagnostic.summary, known),
        detail=HIDDEN if about and diagnostic.detail else hidden(diagnostic.detail, known),
    )


def _forms(secret: str) -> Iterable[str]:
    if len(secret) < SHORTEST:
        return
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="")
    yield quote_plus(secret)
    if len(lines := secret.splitlines()) > 1:  # a message may be indented, or quote one line
        for line in lines:
            if len(line.strip()) >= 2 * SHORTEST:
                yield line.strip()
