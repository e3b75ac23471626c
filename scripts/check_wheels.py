"""Checks that every locked dependency, of `lehr` and of its demo, has a wheel for every Python and machine.

pip itself resolves the lock files for each combination that Lehr supports, from whatever index it is
configured for, and downloads next to nothing. Prints a table; exits with 1 if a wheel is missing.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
# Newest glibc that a wheel may need. 2.28 is what the oldest distributions still in care have; the demo's
# Envoy needs a newer one.
LOCKS = {"requirements.lock": 28, "requirements-demo.lock": 31}
OLDEST_GLIBC = 5
AT_ONCE = 4


class Combination(NamedTuple):
    """A Python version and a machine to find wheels for."""

    python: str
    machine: str

    def __str__(self) -> str:
        return f"{self.python} {self.machine}"


class Answer(NamedTuple):
    """The answer of pip for one combination: the wheels' names by project, or why there are none."""

    wheels: dict[str, str]
    problem: str


def normal(project: str) -> str:
    """The project's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", project).lower()


def without_markers(lock: str) -> str:
    """The lock file without environment markers, which pip reads for the Python that runs it."""
    return re.sub(r"^([^\s#;]+) *;[^\\\n]*", r"\1 ", lock, flags=re.MULTILINE)


def locked(lock: str) -> list[str]:
    """Names and versions (`click==8.5.1`) of a lock file's requirements."""
    return re.findall(r"^([A-Za-z0-9._-]+==[^\s;\\]+)", lock, flags=re.MULTILINE)


def resolve(lock: str, combination: Combination) -> Answer:
    """Let pip find a wheel for every requirement of a lock file."""
    glibcs = range(LOCKS[lock], OLDEST_GLIBC - 1, -1)
    platforms = [f"manylinux_2_{minor}_{combination.machine}" for minor in glibcs]
    platforms += [
        f"{name}_{combination.machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1")
    ]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(without_markers((ROOT / lock).read_text()))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--disable-pip-version-check", "--no-input", "--no-deps", "--require-hashes"]
        command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={combination.python}"]
        command += [f"--platform={platform}" for platform in platforms]
        command += [f"--target={folder}/none", f"--report={report}", f"--requirement={requirements}"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line and not line.startswith("WARNING")]
            return Answer({}, "\n".join(lines))
        found = json.loads(report.read_text())["install"]
    names = (item["download_info"]["url"].rsplit("/", 1)[-1] for item in found)
    return Answer({normal(name.split("-", 1)[0]): name for name in names}, "")


def kind(wheel: str) -> str:
    """How a wheel is bound, for the table: `any`, `none` (a program), `abi3` or the Python version's own."""
    if wheel.endswith("-none-any.whl"):
        return "any"
    tags = wheel.removesuffix(".whl").split("-")
    return "abi3" if "abi3" in tags[-2] else tags[-2]


def check(lock: str) -> bool:
    """Check all combinations for one lock file, and print a table. True if there is every wheel."""
    combinations = [Combination(python, machine) for machine in MACHINES for python in PYTHONS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(resolve, [lock] * len(combinations), combinations)
        answers = dict(zip(combinations, found, strict=True))
    requirements = locked((ROOT / lock).read_text())
    width = max(map(len, (lock, *requirements)))
    print(f"{lock:{width}}", *(f"{combination!s:>13}" for combination in combinations))
    for requirement in requirements:
        project = normal(requirement.split("==", 1)[0])
        cells = [
            kind(answer.wheels[project]) if project in answer.wheels else "?" for answer in answers.values()
        ]
        print(f"{requirement:{width}}", *(f"{cell:>13}" for cell in cells))
    problems = [(combination, answer.problem) for combination, answer in answers.items() if answer.problem]
    for combination, problem in problems:
        print(f"\nPython {combination.python} on {combination.machine} cannot be served:\n{problem}")
    return not problems


def main() -> int:
    """Check all lock files; returns the exit code."""
    served = [check(lock) for lock in LOCKS]
    if all(served):
        return 0
    print("\npip looked in the index it is configured for (see `pip config list`)")
    return 1


if __name__ == "__main__":
    sys.exit(main())
