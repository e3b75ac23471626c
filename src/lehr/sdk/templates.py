"""Jinja2 templates for generators: files of the workspace, rendered strictly.

    from lehr.sdk.generator import SourceFile, asset, for_each_file
    from lehr.sdk.templates import render

    @for_each_file("vhosts/*.yaml", templates="templates/*.j2")
    def vhosts(file: SourceFile):
        site = file.yaml()
        text = render("templates/vhost.conf.j2", site=site)
        yield asset(site["name"], "lehr.File", {"path": f"conf.d/{site['name']}.conf", "content": text})

A variable without a value is an error, and so is any other failure, with file, line and, where it is known,
column. Templates run in Jinja2's sandbox, without what may give another result the next time.

To test such a generator, provide the templates:

    with provided({"templates/vhost.conf.j2": b"..."}):
        assets = list(vhosts(SourceFile("vhosts/a.yaml", b"name: a")))
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from lehr.base.diagnostics import Diagnostic
from lehr.sdk.generator import UnreadableFileError

if TYPE_CHECKING:
    from lehr.base.jinja import Renderer


class _Templates:
    """Those that the running generator may render."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents
        self._renderer: Renderer | None = None

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        from lehr.base.jinja import Renderer, RenderError  # noqa: PLC0415  the only place that needs Jinja2

        if self._renderer is None:
            self._renderer = Renderer(self._contents)
        try:
            return self._renderer.render(template, values)
        except RenderError as error:
            missing = "pass the value; `{{ x | default('') }}` permits that it is missing"
            raise UnreadableFileError(
                [
                    Diagnostic(
                        code="GEN039",
                        what=f"the template {template} cannot be rendered",
                        why=str(error),
                        fix=missing if error.missing else "fix the template",
                        subject=template,
                        at=error.at,
                    )
                ]
            ) from error


_provided: ContextVar[_Templates] = ContextVar("templates")
_NONE = _Templates({})


@contextlib.contextmanager
def provided(contents: Mapping[str, bytes]) -> Iterator[None]:
    """Within the context, `render` finds these templates, by path."""
    token = _provided.set(_Templates(contents))
    try:
        yield
    finally:
        _provided.reset(token)


def render(template: str, /, **values: Any) -> str:
    """The text of the template at the path `template`, with these values.

    Raises:
        UnreadableFileError: the generator names no such template, it is not valid, or it cannot be rendered;
            with the position in the template.
    """
    return _provided.get(_NONE).render(template, values)
