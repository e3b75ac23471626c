"""Long output on a terminal goes through a pager."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click

PAGER_VARIABLE = "LEHR_PAGER"

_NONE = "lehr.no_pager"
"""In the context of a command."""


def _keep(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.meta[_NONE] = context.meta.get(_NONE) or value


no_pager_option = click.option(
    "--no-pager",
    is_flag=True,
    expose_value=False,
    callback=_keep,
    help=f"Do not use a pager. It is {PAGER_VARIABLE}, PAGER or less.",
)


def page(lines: Iterable[str]) -> None:
    """Write `lines` to stdout, if that is a terminal through a pager, which shows short output at once."""
    context = click.get_current_context(silent=True)
    pager = os.environ.get(PAGER_VARIABLE, os.environ.get("PAGER", "less")).strip()
    unwanted = pager in ("", "cat") or (context is not None and context.meta.get(_NONE))
    if unwanted or not sys.stdout.isatty():
        for line in lines:
            print(line)
        return
    os.environ["PAGER"] = pager
    os.environ.setdefault("LESS", "-FRX")
    click.echo_via_pager(f"{line}\n" for line in lines)
