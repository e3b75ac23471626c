"""Strict, sandboxed rendering of Jinja2 templates.

Import it only to render: Jinja2 takes a while to import, and imports threads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from lehr.base.diagnostics import Position

_UNDEFINED = re.compile(r"'([^']+)' is undefined|has no attribute '([^']+)'")
_TAG = re.compile(r"\{[{%]")


class RenderError(Exception):
    """A template cannot be rendered.

    Attributes:
        at: the position in it, or in one that it includes.
        missing: True if a value is missing.
    """

    def __init__(self, why: str, at: Position, *, missing: bool = False) -> None:
        super().__init__(why)
        self.at = at
        self.missing = missing


class Renderer:
    """Renders templates, which may include each other; each is compiled once."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents
        self._environment = environment = ImmutableSandboxedEnvironment(
            undefined=jinja2.StrictUndefined,
            loader=jinja2.FunctionLoader(self._source),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        del environment.globals["lipsum"], environment.filters["random"]  # another result each time

    def _source(self, name: str) -> tuple[str, str, None]:
        if name not in self._contents:
            raise jinja2.TemplateNotFound(name)
        return self._contents[name].decode(), name, None

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        """The text of a template with these values.

        Raises:
            RenderError: there is no such template, it is not valid, or an expression fails.
        """
        try:
            return self._environment.get_template(template).render(values)
        except jinja2.TemplateSyntaxError as error:
            at = Position(error.filename or template, error.lineno)
            raise RenderError(error.message or "a syntax error", at) from error
        except jinja2.TemplateNotFound as error:
            known = ", ".join(sorted(self._contents)) or "none"
            why = f"there is no template {error.name}; templates of this generator: {known}"
            raise RenderError(why, self._position(error) or Position(template)) from error
        except Exception as error:  # whatever an expression raises
            at = self._position(error) or Position(template)
            ours = isinstance(error, jinja2.TemplateError)
            why = f"{error}" if ours else f"{type(error).__name__}: {error}"
            missing = isinstance(error, jinja2.UndefinedError)
            raise RenderError(why, self._with_column(at, error), missing=missing) from error

    def _position(self, error: Exception) -> Position | None:
        """The innermost line of a template in a traceback: Jinja2 puts the lines of templates there."""
        found = None
        step: TracebackType | None = error.__traceback__
        while step is not None:
            if step.tb_frame.f_code.co_filename in self._contents:
                found = Position(step.tb_frame.f_code.co_filename, step.tb_lineno)
            step = step.tb_next
        return found

    def _with_column(self, at: Position, error: Exception) -> Position:
        """`at`, with the column of what is undefined, if the message and the line name it."""
        name = _UNDEFINED.search(str(error)) if isinstance(error, jinja2.UndefinedError) else None
        lines = self._contents.get(at.file, b"").decode(errors="replace").splitlines()
        if name is None or not 0 < at.line <= len(lines):
            return at
        line = lines[at.line - 1]
        tag = _TAG.search(line)  # in a tag of several lines, none begins here
        found = re.compile(rf"\b{re.escape(name[1] or name[2])}\b").search(line, tag.start() if tag else 0)
        return at if found is None else Position(at.file, at.line, found.start() + 1)
