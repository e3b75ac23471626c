"""`lehr validate-canary`: judges a recorded canary."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lehr.cli import formatting, terminal
from lehr.cli.canary_table import metric_table
from lehr.cli.command import command
from lehr.cli.output import output_option, show_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lehr.base.diagnostics import Diagnostic
    from lehr.canary import Judge, Verdict
    from lehr.cli.judge_file import JudgeFile

INCONCLUSIVE = 4
_FAIL = 1
_LATEST = 1e11


@command("validate-canary")
@click.option(
    "--from",
    "recording",
    required=True,
    metavar="CSV",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Recorded counters; - for stdin.",
)
@click.option(
    "--judge",
    "judge_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Metrics, margins and minimum exposure; see the reference of judge files.",
)
@click.option(
    "--look-every",
    "look_every",
    metavar="TIME",
    default="60s",
    show_default=True,
    callback=formatting.duration,
    help="Time between looks.",
)
@click.option(
    "--pushed-at",
    "pushed_at",
    metavar="SECONDS",
    type=float,
    help="Unix time at which the canary got its version; older samples do not count. Default: the first one.",
)
@output_option("text", "json")
def validate_canary(
    recording: Path, judge_file: Path | None, look_every: float, pushed_at: float | None, form: str
) -> None:
    """Judge recorded data of a canary as it would have been judged live: look by look.

    The CSV has a row for each replica and sample: `time,group,replica,requests,errors,...`. `time` is in
    Unix seconds, `group` is canary or control, and all other columns are cumulative counters; a histogram has
    columns such as `latency_le_0.05`. Empty cells were not measured.

    Without --judge, errors per request and the share of requests above each bound of a histogram are judged.
    The canary fails as soon as it is worse than the controls beyond chance and beyond a margin; looking often
    does not raise the probability of a false FAIL. It passes if it is within the margin beyond chance, with a
    minimum of requests and time. Everything else is INCONCLUSIVE.

    Examples:
        lehr validate-canary --from metrics.csv
        lehr validate-canary --from metrics.csv --judge judge.yaml --look-every 30s
        lehr validate-canary --from metrics.csv --pushed-at 1767225600 -o json

    Exits with 0 for PASS, 1 for FAIL, 4 for INCONCLUSIVE, and 2 if a file cannot be used.
    """
    from lehr.canary import Judge, Judgement, Outcome, looks_of
    from lehr.canary.recording import read_recording
    from lehr.cli.diagnostics import refuse_file
    from lehr.cli.judge_file import JudgeFile, counter_problems

    if not look_every > 0:
        raise click.BadParameter("looks need some time between them", param_hint="--look-every")
    if pushed_at is not None and not 0 <= pushed_at < _LATEST:
        raise click.BadParameter("write it in Unix seconds, like 1767225600", param_hint="--pushed-at")
    for path in filter(None, (recording, judge_file)):
        if str(path) != "-" and not path.is_file() and not path.is_fifo():
            raise click.UsageError(f"{path} is not a file that exists")
    defined = JudgeFile(Judge()) if judge_file is None else _judge_in(judge_file, form)
    definition = defined.judge
    read = read_recording(_name(recording), _lines(recording, form))
    problems = [*read.diagnostics]
    if not _errors(problems):
        problems += counter_problems(_name(recording), defined, read.counters)
    if _errors(problems):
        refuse_file(problems, form)
    _warn(problems)
    judgement = Judgement(definition, read.counters, pushed_at)
    gap = definition.longest_gap_seconds
    for look in looks_of(read.samples, look_every, definition.warmup_seconds, gap, pushed_at):
        if judgement.add(look) is Outcome.FAIL:
            break
    verdict = judgement.verdict()
    if form == "json":
        show_document(form, _document(verdict))
    else:
        first = read.samples[0].time if read.samples else 0.0
        begun = first if pushed_at is None else pushed_at
        _show(verdict, begun, definition)
    codes = {Outcome.PASS: 0, Outcome.FAIL: _FAIL, Outcome.INCONCLUSIVE: INCONCLUSIVE}
    if code := codes[verdict.verdict]:
        raise click.exceptions.Exit(code)


def _document(verdict: Verdict) -> Any:
    import msgspec

    return msgspec.to_builtins(verdict)


def _name(recording: Path) -> str:
    return "stdin" if str(recording) == "-" else str(recording)


def _lines(recording: Path, form: str) -> Iterator[str]:
    """The lines of the file, which are decoded while it is read."""
    from lehr.base.diagnostics import Position, file_problem
    from lehr.cli.diagnostics import refuse_file

    stream = sys.stdin.buffer if str(recording) == "-" else recording.open("rb")
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    with stream:
        number = 0
        for number, line in enumerate(stream, start=1):
            try:
                text = decode(line)
            except UnicodeDecodeError as error:
                at = Position(_name(recording), number, error.start + 1)
                refuse_file(
                    [file_problem("DOC002", at, what="the file is not UTF-8", fix="save it as UTF-8")], form
                )
            yield text.replace("\r\n", "\n")


def _judge_in(file: Path, form: str) -> JudgeFile:
    from lehr.cli.diagnostics import refuse_file
    from lehr.cli.judge_file import read_judge

    definition, problems = read_judge(str(file), file.read_bytes())
    if definition is None:
        refuse_file(problems, form)
    return definition


def _errors(problems: Sequence[Diagnostic]) -> list[Diagnostic]:
    from lehr.base.diagnostics import errors

    return errors(problems)


def _warn(problems: Sequence[Diagnostic]) -> None:
    from lehr.cli.diagnostics import show

    if problems:
        show(problems)


def _show(verdict: Verdict, begun: float, definition: Judge) -> None:
    colour = {"PASS": "green", "FAIL": "red"}.get(verdict.verdict, "yellow")
    word = terminal.style(verdict.verdict, colour, bold=True)
    at = verdict.decided_at if verdict.decided_at is not None else verdict.at
    after = f" after {formatting.span(at - begun)}" if at is not None else ""
    print(f"{word}{after} ({formatting.counted(verdict.looks, 'look')}, alpha {definition.alpha:g})")
    if not verdict.metrics:
        return
    print()
    for line in metric_table(verdict.metrics, terminal.width()):
        print(line)
    print()
    for reason in [verdict.reason] if verdict.verdict == "PASS" else _reasons(verdict):
        print(terminal.printable(reason))


def _reasons(verdict: Verdict) -> list[str]:
    """Of the metrics that decide."""
    return [f"{item.name}: {item.reason}" for item in verdict.metrics if item.verdict is verdict.verdict]
