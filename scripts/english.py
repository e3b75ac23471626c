"""Find wording that reads as translated, in documents, comments and messages.

    scripts/english.py [--count] PATH ...

Prints `file:line: pattern: the words found` for each hit, and exits with 1 if there are any. `--count`
prints the number of hits of each pattern instead. Folders are searched for documents, Python, YAML, TOML and
shell scripts. In a document the prose is searched, without code, program output and addresses; in Python the
strings and comments, without the code in f-strings and in backticks; in other files the comments.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pattern:
    """A wording to avoid.

    Attributes:
        name: what it is called in reports.
        regex: matched against text in which a line break may stand for any space.
        reason: what is wrong with it, and what to write.
    """

    name: str
    regex: re.Pattern[str]
    reason: str


def _pattern(name: str, regex: str, reason: str) -> Pattern:
    return Pattern(name, re.compile(regex.replace(" ", r"\s+"), re.IGNORECASE), reason)


PATTERNS: tuple[Pattern, ...] = (
    _pattern("whoever", r"\bwho(so)?ever\b", "Name the actor: the user, a process, anyone who can connect."),
    _pattern("somebody", r"\b(some|no)body\b", "Name the role: an operator, a user, a reviewer, no process."),
    _pattern("all that", r"\ball that\b", "Write 'everything that', or name the things."),
    _pattern(
        "is no",
        r"(?<!there\s)\b(is|are|was|were) (no (?!longer\b|(more|fewer|less|later) than\b)|(?-i:none)\b)",
        "Write 'is not a', 'does not exist' or 'has no'.",
    ),
    _pattern("mend", r"\bmend(s|ed|ing)?\b", "Write 'fix' or 'repair'."),
    _pattern("anew", r"\banew\b", "Write 'again', or 'regenerate', 'rewrite'."),
    _pattern(
        "shall",
        r"\bshall\b|\b(is|are|was|were) (not )?to be\b",
        "Write 'should', 'must' or 'will'.",
    ),
    _pattern(
        "stands", r"\b(stands?|stood|standing)\b(?! (for|by)\b)", "Write 'is active', 'is set' or 'is'."
    ),
    _pattern("beside", r"\bbeside\b", "Write 'next to'."),
    _pattern("by itself", r"\b(by|of) (itself|themselves)\b", "Write 'automatically', or drop it."),
    _pattern("meanwhile", r"\bmeanwhile\b", "Write 'while' with what happens, or 'until then'."),
    _pattern("go on", r"\b(go|goes|going|went|gone) on\b(?! to\b)", "Write 'continue' or 'keep'."),
    _pattern(
        "tell",
        r"\b(tells?|told|hears?|heard)\b",
        "Write 'report', 'print', 'show', 'notify' or 'learn'.",
    ),
    _pattern(
        "say",
        r"\b(say|says|said|saying)\b",
        "Write 'report', 'state', 'describe', 'declare' or 'list'.",
    ),
    _pattern("come to", r"\b(come|comes|came|coming) (to|of)\b", "Write 'result in', 'become' or 'reach'."),
    _pattern(
        "what is",
        r"(?:\A[\s\d.*-]*|[.;] )what (?!to\b|if\b)[^.?!:;|]*[.;]"
        r"|: what [^.,?!:;|]*\b(is|are|has|stays)\b[^.,?!:;|]*[.;]",
        "Make the thing itself the subject: 'A failed push is retried', not 'What failed is tried again'.",
    ),
    _pattern("too", r"\btoo(?=[.,;:)])", "Write 'also', or drop it."),
    _pattern("for it", r"\bfor it(?=[.,;:)])", "Name the thing, or drop it."),
    _pattern(
        "old words",
        r"\b(alike|ever so|hitherto|whatsoever|thereof|therein|whence|thence|lest|nought|forthwith)\b",
        "Use an everyday word.",
    ),
)


@dataclass(frozen=True)
class Hit:
    """One place where a pattern was found."""

    path: Path
    line: int
    pattern: Pattern
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.pattern.name}: {self.text}"


_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n)\n(?:(?: {4,}\S.*|[ \t]*)\n)+")
_INLINE = re.compile(r"`[^`]+`")
_ADDRESS = re.compile(r"(?<=\])\([^()\s]*\)|<https?:[^>]*>")
_FIELD = re.compile(r"\{[^{}]*\}")
_CODE = re.compile(r"('[^']*'|\"[^\"]*\")|[^\n]")
_PREFIX = re.compile(r"[rbfu]*", re.IGNORECASE)
_BLOCK = re.compile(r"\n(?=[ \t]*\n|[|#>]|[ \t]*(?:[-*]|\d+\.) )")


def _blank(text: str, regex: re.Pattern[str], filler: str = " ") -> str:
    """The text with what matches blanked out; lines keep their numbers."""
    return regex.sub(lambda found: re.sub(r"[^\n]", filler, found.group()), text)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The first line's number and the text of each paragraph, list item and table row of a document."""
    for regex, filler in ((_FENCE, " "), (_INDENTED, " "), (_INLINE, "_"), (_ADDRESS, " ")):
        text = _blank(text, regex, filler)
    line = 1
    for block in _BLOCK.split(text):
        yield line, block
        line += block.count("\n") + 1


def _without_fields(text: str) -> str:
    """An f-string without the code in braces, but with the strings in that code."""
    while _FIELD.search(text):
        text = _FIELD.sub(lambda found: _CODE.sub(lambda part: part[1] or " ", found.group()), text)
    return text


def _words(token: tokenize.TokenInfo) -> str:
    """The text of a string or comment, without quotes, code in braces and words in backticks."""
    text = token.string
    if token.type in (tokenize.STRING, tokenize.COMMENT):
        prefix = _PREFIX.match(text)
        assert prefix is not None
        text = text[prefix.end() :].strip("\"'# ")
        text = _without_fields(text) if "f" in prefix.group().lower() else text
    return _blank(text, _INLINE, "_")


def strings_and_comments(text: str) -> Iterator[tuple[int, str]]:
    """Each string and comment of a Python source."""
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            yield token.start[0], _words(token)


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Each comment of YAML, TOML or a shell script."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.search(r"(?:^|\s)#(.*)", line):
            yield number, found.group(1)


READERS: dict[str, Callable[[str], Iterator[tuple[int, str]]]] = {
    ".md": prose,
    ".py": strings_and_comments,
    ".toml": comments,
    ".yaml": comments,
    ".yml": comments,
    ".sh": comments,
}


def found_in(path: Path, text: str) -> Iterator[Hit]:
    """Every hit in one file's text, in order of lines for each passage."""
    for start, passage in READERS[path.suffix](text):
        for pattern in PATTERNS:
            for match in pattern.regex.finditer(passage):
                line = start + passage.count("\n", 0, match.start())
                yield Hit(path, line, pattern, " ".join(match.group().split()))


def hits(paths: Iterable[Path]) -> Iterator[Hit]:
    """Every hit in files, and in the files of folders that have a reader.

    Args:
        paths: files and folders; a file that has no reader gives none.

    Raises:
        OSError: a file cannot be read.
    """
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.suffix in READERS and file.is_file():
                yield from found_in(file, file.read_text())


def main(arguments: list[str]) -> int:
    """Print the hits, or their numbers; 1 if there are any."""
    counted = "--count" in arguments
    found = list(hits(Path(argument) for argument in arguments if argument != "--count"))
    if counted:
        numbers = Counter(hit.pattern.name for hit in found)
        for pattern in PATTERNS:
            print(f"{numbers[pattern.name]:5} {pattern.name}")
    else:
        print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} found", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
