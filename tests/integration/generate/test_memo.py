"""What workers have made is kept for their successors, and costs nothing but time when it is lost."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest
import structlog

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic
from lehr.generate.engine.assembly import Unit
from lehr.generate.engine.build import Build
from lehr.generate.engine.client import GenerationWorker
from lehr.generate.engine.installed import digest_of_installed
from lehr.generate.engine.memo import Memo
from lehr.generate.engine.runs import Run
from lehr.generate.outcome.output import Output
from lehr.generate.outcome.protocol import Built, Changed, SandboxLimits
from lehr.generate.sandbox import forks
from lehr.generate.sandbox.denials import preload
from lehr.model.asset import Asset, AssetId
from lehr.sdk.generation import Generated
from lehr.testing.samples import registry
from tests.snapshots import MemorySnapshot

Files = dict[str, str | bytes]

HEAD = "from lehr.sdk.generator import *\n"
EACH = (
    HEAD
    + """
@for_each_file("services/*.yaml")
def services(file):
    yield asset(file.text(), "sample.Service", {"command": [file.path]})
    yield annotate(file.text(), "lehr.Owner", {"team": "us"})
"""
)
ROUTES = (
    HEAD
    + """
import _words
@for_each_asset("sample.Service", makes="sample.Route")
def routes(service):
    yield asset(_words.route(service.id), "sample.Route", {"path": "/", "service": service.id})
"""
)
FILES: Files = {
    "lehr.yaml": "partition: test\n",
    "assets/plain.yaml": "{id: plain, type: sample.Policy}\n",
    "generators/each.py": EACH,
    "generators/routes.py": ROUTES,
    "generators/_words.py": "def route(id): return 'route/' + id\n",
    "services/x.yaml": "x",
    "services/y.yaml": "y",
}


class Process:
    """What a worker is, in this process: it begins with what the file holds.

    Attributes:
        fetched: files whose contents it asked for.
        calls: how often a generator's module was put into a fork, without those for descriptions.
    """

    def __init__(
        self, path: Path | None, installed: str = "here", most_bytes: int = 1 << 30, writes: bool = True
    ) -> None:
        self.memo = Memo(path, installed, most_bytes, writes=writes)
        self.fetched: list[str] = []
        self.calls = 0
        self._files: Files = {}
        self._build = Build(
            registry(), self._fetch, Run(SandboxLimits(), SystemClock(), self._run), self.memo
        )

    def _fetch(self, paths):  # type: ignore[no-untyped-def]
        self.fetched += paths
        for path in paths:
            content = self._files[path]
            yield content if isinstance(content, bytes) else content.encode()

    def _run(self, work, limits, clock, take):  # type: ignore[no-untyped-def]
        self.calls += work.func.__name__ == "call_each"
        return forks.run(work, limits, clock, take)

    def build(self, files: Files, gone: tuple[str, ...] = ()) -> Built:
        """What comes of it; all that can wait is done after it."""
        preload()
        self._files = files
        entries = MemorySnapshot(files).files().values()
        built = self._build.build(Changed(tuple(entries), gone))
        for _ in self._build.idle():
            pass
        return built

    def end(self) -> None:
        self.memo.close()


def once(path: Path | None, files: Files = FILES, **options: object) -> tuple[Built, Process]:
    process = Process(path, **options)  # type: ignore[arg-type]
    built = process.build(files)
    process.end()
    return built, process


def test_a_worker_that_is_started_again_calls_nothing_and_parses_nothing(tmp_path: Path) -> None:
    first, cold = once(tmp_path / "memo")
    again, warm = once(tmp_path / "memo")
    clean, _ = once(None)
    assert cold.calls == 2
    assert warm.calls == 0
    assert sorted(warm.fetched) == sorted(["lehr.yaml", *(path for path in FILES if path.endswith(".py"))])
    assert again == first == clean
    assert {str(asset.id) for asset in again.upserts} == {"plain", "route/x", "route/y", "x", "y"}


def test_a_worker_that_only_reads_uses_the_outputs_of_others_and_adds_none(tmp_path: Path) -> None:
    first, _ = once(tmp_path / "memo")
    kept = rows_of(tmp_path / "memo")
    again, warm = once(tmp_path / "memo", writes=False)
    assert warm.calls == 0
    assert again == first
    once(tmp_path / "memo", {**FILES, "services/z.yaml": "z"}, writes=False)
    assert rows_of(tmp_path / "memo") == kept


@pytest.mark.parametrize("content", [None, b"", b"no database" * 1000])
def test_a_worker_that_only_reads_leaves_a_file_that_it_cannot_use_as_it_is(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "memo").write_bytes(content)
    clean, _ = once(None)
    built, process = once(tmp_path / "memo", writes=False)
    assert built == clean
    assert process.memo.take_problem() == ""
    assert [path.read_bytes() for path in tmp_path.glob("memo")] == [content] * (content is not None)


def test_across_a_restart_changed_code_runs_again_and_no_other(tmp_path: Path) -> None:
    once(tmp_path / "memo")
    words = {**FILES, "generators/_words.py": "def route(id): return 'way/' + id\n"}
    built, process = once(tmp_path / "memo", words)
    assert process.calls == 1
    assert {str(item.id) for item in built.upserts} == {"plain", "way/x", "way/y", "x", "y"}


def test_changed_code_runs_again_and_no_other() -> None:
    process = Process(None)
    process.build(FILES)
    assert process.calls == 2
    process.build({**FILES, "generators/each.py": f"{EACH}# other code\n"})
    assert process.calls == 3
    process.build({**FILES, "generators/other.py": f"{HEAD}@for_each_file('no')\ndef f(file): pass\n"})
    assert process.calls == 4  # the first is as it was before


def test_a_module_that_appears_beside_a_generator_that_looks_for_it_is_a_change_of_its_code() -> None:
    code = HEAD + (
        "@for_all_files('services/*.yaml')\ndef f(files):\n"
        "    try:\n        from _later import text\n    except ImportError:\n        text = 'none'\n"
        "    yield asset('a', 'sample.Policy', {'text': text})\n"
    )
    files: Files = {"lehr.yaml": "partition: p\n", "generators/a.py": code, "services/x.yaml": "x"}
    process = Process(None)
    [first] = process.build(files).upserts
    [second] = process.build({**files, "generators/_later.py": "text = 'here'\n"}).upserts
    assert first.document()["payload"]["text"] == "none"
    assert second.document()["payload"]["text"] == "here"


def test_a_module_that_no_import_names_is_not_found_and_the_error_says_what_to_write() -> None:
    code = HEAD + (
        "import importlib\n@for_all_files('services/*.yaml')\ndef f(files):\n"
        "    importlib.import_module('_hid' + 'den')\n    yield from ()\n"
    )
    files: Files = {
        "lehr.yaml": "partition: p\n",
        "generators/a.py": code,
        "generators/_hidden.py": "",
        "services/x.yaml": "x",
    }
    [problem] = Process(None).build(files).diagnostics
    assert problem.code == "GEN022"
    assert "import" in problem.fix


@pytest.mark.parametrize("installed", ["other program"])
def test_what_another_program_has_made_is_made_again(tmp_path: Path, installed: str) -> None:
    once(tmp_path / "memo")
    _, process = once(tmp_path / "memo", installed=installed)
    assert process.calls == 2


def test_what_is_installed_changes_with_a_package_and_with_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = digest_of_installed("a")
    assert before == digest_of_installed("a") != digest_of_installed("b")
    (tmp_path / "thing-1.0.dist-info").mkdir()
    assert digest_of_installed("a") != before


def test_errors_are_not_kept(tmp_path: Path) -> None:
    failing: Files = {**FILES, "services/y.yaml": "not an id"}
    first, _ = once(tmp_path / "memo", failing)
    again, process = once(tmp_path / "memo", failing)
    assert [item.code for item in first.diagnostics] == [item.code for item in again.diagnostics] != []
    assert "services/y.yaml" in process.fetched
    assert "services/x.yaml" not in process.fetched


def rows_of(path: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(path) as database:
        return sorted(database.execute("SELECT maker, item FROM output"))


def test_a_row_that_was_damaged_is_made_again_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "memo"
    first, _ = once(path)
    with sqlite3.connect(path) as database:
        for id, content in database.execute("SELECT id, content FROM output").fetchall():
            torn = content[:-3] if id % 2 else bytes([content[0] ^ 1]) + content[1:]
            database.execute("UPDATE output SET content = ? WHERE id = ?", (torn, id))
    again, process = once(path)
    assert again.diagnostics == first.diagnostics
    assert again == first
    assert process.calls == 2
    assert once(path)[1].calls == 0


def test_rows_that_have_changed_places_are_not_taken_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "memo"
    first, _ = once(path)
    with sqlite3.connect(path) as database:
        contents = database.execute("SELECT id, content FROM output ORDER BY id").fetchall()
        for (id, _), (_, content) in zip(contents, contents[1:] + contents[:1], strict=True):
            database.execute("UPDATE output SET content = ? WHERE id = ?", (content, id))
    again, process = once(path)
    assert again == first
    assert process.calls == 2


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_database_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "memo"
    once(path)
    path.write_bytes(damage)
    again, process = once(path)
    assert (process.calls, process.memo.take_problem()) == (2, "")
    assert again == once(path)[0]
    assert once(path)[1].calls == 0


def test_a_file_that_is_damaged_in_the_middle_is_done_without(tmp_path: Path) -> None:
    path = tmp_path / "memo"
    first, _ = once(path, many())
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))
    assert once(path, many())[0] == first
    assert once(path, many())[0] == first
    assert once(path, many())[1].calls == 0


def many(text: str = "") -> Files:
    return {**FILES, **{f"services/{number}.yaml": f"s{number}{text}" for number in range(200)}}


def test_a_file_that_others_have_locked_is_done_without_and_said_so_once(tmp_path: Path) -> None:
    path = tmp_path / "memo"
    once(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    process = Process(path)
    process.build(many())
    assert "locked" in process.memo.take_problem()
    assert process.memo.take_problem() == ""
    process.end()
    other.close()


def test_a_place_that_cannot_be_written_to_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    built, process = once(tmp_path / "file" / "memo")
    assert built == once(None)[0]
    assert process.memo.take_problem() != ""


def test_a_full_disk_costs_nothing_but_the_memo() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    built, process = once(Path("/dev/full"))
    assert built == once(None)[0]
    assert process.memo.take_problem() != ""


def test_the_file_is_bounded_and_what_is_in_force_stays_in_it(tmp_path: Path) -> None:
    path, most = tmp_path / "memo", 400_000
    process = Process(path, most_bytes=most)
    files: Files = {}
    for number in range(12):
        padding = os.urandom(6000).hex()
        files = {"lehr.yaml": FILES["lehr.yaml"]}
        files |= {f"assets/{n}.yaml": plain(n, number, padding) for n in range(5)} | {
            "lehr.yaml": FILES["lehr.yaml"]
        }
        process.build(files)
    assert process.memo.take_problem() == ""
    process.end()
    assert path.stat().st_size < 2 * most
    assert len(rows_of(path)) < 60
    _, again = once(path, files)
    assert again.fetched == ["lehr.yaml"]


def plain(number: int, turn: int, padding: str) -> str:
    return f"{{id: a{number}, type: sample.Policy, payload: {{text: {turn}x{padding}}}}}\n"


def test_what_does_not_fit_at_all_ends_the_memo_with_a_word(tmp_path: Path) -> None:
    _, process = once(tmp_path / "memo", many(), most_bytes=10_000)
    assert "in force" in process.memo.take_problem()


def test_what_is_written_waits_until_somebody_has_time(tmp_path: Path) -> None:
    memo = Memo(tmp_path / "memo")
    unit = Unit("", "a")
    memo.note(unit, Output("inputs"))
    assert memo.get(unit, "inputs") is None
    assert list(memo.write({unit: Output("inputs")}.get)) == [None]
    assert memo.get(unit, "inputs") == Output("inputs")
    assert memo.get(unit, "others") is None
    memo.close()


def test_equal_inputs_of_another_item_are_not_known(tmp_path: Path) -> None:
    memo = Memo(tmp_path / "memo")
    memo.note(Unit("generator", "a.yaml"), Output("inputs"))
    list(memo.write(lambda _unit: None))
    assert memo.get(Unit("generator", "a.yaml"), "inputs") == Output("inputs")
    assert memo.get(Unit("generator", "b.yaml"), "inputs") is None
    memo.close()


def test_outputs_that_chance_had_a_part_in_are_not_kept(tmp_path: Path) -> None:
    memo = Memo(tmp_path / "memo")
    memo.note(Unit("", "a"), Output("inputs", repeatable=False))
    memo.note(Unit("", "b"), Output("inputs", diagnostics=(Diagnostic(code="GEN001", what="x"),)))
    assert list(memo.write(lambda _unit: None)) == []
    memo.close()


def assets_of(generated: Generated) -> Mapping[AssetId, Asset]:
    return dict(generated.assets)


def test_a_real_worker_keeps_what_it_makes_and_says_what_keeps_it_from_that(tmp_path: Path) -> None:
    async def made(path: Path, rows: int) -> Generated:
        worker = GenerationWorker("lehr.testing.samples:registry", Inline(), memo=path)
        generated = await worker.generate(MemorySnapshot(FILES))
        for _ in range(3000):
            if not rows or len(rows_of(path)) >= rows:
                break
            await asyncio.sleep(0.01)
        await worker.close()
        return generated

    async def main() -> None:
        first = await made(tmp_path / "memo", 5)
        assert assets_of(await made(tmp_path / "memo", 0)) == assets_of(first)
        (tmp_path / "file").write_text("")
        with structlog.testing.capture_logs() as said:
            assert assets_of(await made(tmp_path / "file" / "memo", 0)) == assets_of(first)
        assert [(entry["event"], entry["log_level"]) for entry in said] == [
            ("outputs of generators are not kept", "warning")
        ]

    asyncio.run(asyncio.wait_for(main(), 60))
