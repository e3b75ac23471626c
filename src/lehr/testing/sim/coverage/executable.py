"""The lines of a source file that count: those that run when a function is called.

What runs at import only is left out: imports, constants, class bodies, `def` and `class` lines. Every
history starts with the modules imported, so nothing about histories can be learned from these lines.
Functions without a body (protocols, overloads) and `if TYPE_CHECKING` are left out as well.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import CodeType

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_AT_ONCE = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def executable(source: str) -> frozenset[int]:
    """Numbers of the lines of `source` that run when one of its functions is called.

    Raises:
        SyntaxError: it is not Python.
    """
    tree = ast.parse(source)
    functions = {_first_line(node): node for node in ast.walk(tree) if isinstance(node, _Function)}
    lines = set[int]()
    for code in _functions(compile(tree, "<source>", "exec")):
        found = lines_of(code)
        if (node := functions.get(code.co_firstlineno)) is not None and node.name == code.co_name:
            found = found - set(range(code.co_firstlineno, node.body[0].lineno))
        lines |= found
    return frozenset(lines.difference(*map(_left_out, ast.walk(tree))))


def lines_of(code: CodeType) -> set[int]:
    """Numbers of the lines that `code` has instructions for."""
    return {line for _start, _end, line in code.co_lines() if line}


def _functions(code: CodeType, *, called: bool = False) -> Iterator[CodeType]:
    """Functions within `code`, at any depth; `called`: `code` itself is a function."""
    for constant in code.co_consts:
        if not isinstance(constant, CodeType):
            continue
        is_function = bool(constant.co_flags & inspect.CO_OPTIMIZED)  # unlike the body of a class
        if is_function and (called or constant.co_name not in _AT_ONCE):
            yield constant
            yield from _functions(constant, called=True)
        else:
            yield from _functions(constant)


def _first_line(node: _Function) -> int:
    return min(line.lineno for line in (node, *node.decorator_list))


def _left_out(node: ast.AST) -> range:
    """The lines of `node` if it never runs, though it may have instructions."""
    if isinstance(node, _Function) and all(map(_is_nothing, node.body)):
        return range(_first_line(node), (node.end_lineno or node.lineno) + 1)
    if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        return range(node.lineno, (node.body[-1].end_lineno or node.lineno) + 1)
    return range(0)


def _is_nothing(statement: ast.stmt) -> bool:
    """Whether it is a docstring or `...`."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
