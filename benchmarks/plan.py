"""`lehr plan` and `lehr run --once` as whole processes, with nothing to do for SIZE files in ten manifests.

The files, of 600 B each, were created by an earlier `lehr run --once`, so the worker has kept its outputs.
The floor is a bare Python process that reads all files. Processor time is that of the process and of those
that it waited for. Measure sizes 1,000 and 10,000.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import figures
from benchmarks.files import LEHR, READ, spent, timed

MANIFESTS = 10
PER_FOLDER = 1000
ROUNDS = 5


def prepare(folder: Path, size: int) -> None:
    """A workspace, in git, with some YAML files of many assets each."""
    (folder / "assets").mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: bench\n")
    for manifest in range(MANIFESTS):
        documents = []
        for number in range(manifest, size, MANIFESTS):
            path = folder.parent / "out" / str(number // PER_FOLDER) / str(number)
            lines = "".join(f"    line {line} of file {number}".ljust(60) + "\n" for line in range(10))
            documents.append(
                f"id: file-{number}\ntype: lehr.File\npayload:\n  path: {path}\n  content: |\n{lines}"
            )
        (folder / "assets" / f"{manifest}.yaml").write_text("---\n".join(documents))
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "files"]):
        subprocess.run([*git, *command], cwd=folder, check=True, capture_output=True)


def main() -> None:
    """Print the figures, the best of some rounds each."""
    size = figures.size(1000)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        workspace = root / "workspace"
        prepare(workspace, size)
        state = ("--state", str(root / "state"))
        timed(*LEHR, "run", "--once", *state, cwd=workspace)
        made = sum(path.is_file() for path in (root / "out").rglob("*"))
        assert made == size, f"{made} of {size} files are there"
        for figure, arguments in {"plan": ["plan", "--exit-code"], "noop": ["run", "--once"]}.items():
            rounds = [spent(*LEHR, *arguments, *state, cwd=workspace) for _ in range(ROUNDS)]
            floor = min(timed(sys.executable, "-c", READ, str(root / "out"), cwd=root) for _ in range(ROUNDS))
            figures.report(
                figure,
                min(rounds).wall,
                "s",
                size,
                peer=figures.Peer("bare Python that reads the files", floor),
                rounds=ROUNDS,
                worst=round(max(rounds).wall, 3),
                processor_seconds=round(min(item.processor for item in rounds), 3),
            )


if __name__ == "__main__":
    main()
