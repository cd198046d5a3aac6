"""Which case ran which line: made once for the tests and sources of a commit."""

from __future__ import annotations

import ast
import difflib
import json
import os
import queue
import sqlite3
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cached_property, lru_cache
from pathlib import Path

import coverage
from coverage.numbits import numbits_to_nums

from mutants.cases import CIRCLES, PLUGINS, Case


class Record:
    """A folder of `….lines` and `….cases` (of `recorder`), and `commit`, which they were made of.

    Lines are those of the commit `now`. Where its sources are others, each line is looked for among
    the old ones; a line that is new was run by no case.
    """

    def __init__(self, folder: Path, *, root: Path, now: str) -> None:
        """Read the cases; the lines when they are asked for."""
        self._folder = folder
        self._root = root
        self._now = now
        self.commit = (folder / "commit").read_text().strip()
        self.failed: list[str] = []
        self.cases: dict[str, Case] = {}
        for path in sorted(folder.glob("*.cases")):
            for line in path.read_text().splitlines():
                read = json.loads(line)
                if read.pop("passed"):
                    self.cases[read["id"]] = Case(**read)
                else:
                    self.failed.append(read["id"])

    def cases_of(self, path: str, lines: Collection[int]) -> list[Case]:
        """The cases of `CIRCLES` that ran one of a module's lines."""
        wanted = set(lines)
        found = (id for id, ran in self._lines(path).items() if not wanted.isdisjoint(ran))
        cases = (self.cases.get(id) for id in found)
        return [case for case in cases if case and case.circle in CIRCLES]

    def counts(self, path: str, lines: Collection[int]) -> dict[str, int]:
        """How many of a module's lines each case ran, by its id."""
        wanted = set(lines)
        return {id: len(wanted & ran) for id, ran in self._lines(path).items()}

    def lines_run(self, path: str, circles: Collection[str]) -> set[int]:
        """The lines of a module that a case of these circles ran, or every import of it."""
        ran = set()
        inside = inside_functions(self._source(self._now, path))
        for id, lines in self._lines(path).items():
            case = self.cases.get(id)
            if case and case.circle in circles:
                ran |= lines
            else:
                ran |= lines - inside
        return ran

    @lru_cache(maxsize=64)  # noqa: B019 (one object a process)
    def _lines(self, path: str) -> dict[str, set[int]]:
        """The lines that each case ran, by its id; "" is what ran outside of all."""
        found: dict[str, set[int]] = defaultdict(set)
        moved = self._moved(path)
        for data in self._data:
            for id, bits in data.execute(
                "SELECT context, numbits FROM line_bits JOIN context ON context.id = context_id"
                " JOIN file ON file.id = file_id WHERE path LIKE ?",
                (f"%/{path}",),
            ):
                found[id] |= {moved[line] for line in numbits_to_nums(bits) if line in moved}
        return found

    @cached_property
    def _data(self) -> list[sqlite3.Connection]:
        paths = sorted(self._folder.glob("*.lines"))
        return [
            sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
            for path in paths
        ]

    def _moved(self, path: str) -> dict[int, int]:
        """The number of each line now, by the number that it had."""
        before, after = self._source(self.commit, path), self._source(self._now, path)
        if before == after:
            return {n: n for n in range(1, len(after.splitlines()) + 1)}
        matcher = difflib.SequenceMatcher(
            None, before.splitlines(), after.splitlines(), autojunk=False
        )
        return {
            old + n + 1: new + n + 1
            for old, new, count in matcher.get_matching_blocks()
            for n in range(count)
        }

    def _source(self, commit: str, path: str) -> str:
        shown = subprocess.run(
            ["git", "show", f"{commit}:{path}"], cwd=self._root, capture_output=True, check=False
        )
        return shown.stdout.decode()


def inside_functions(source: str) -> set[int]:
    """The lines that run when something is called, not when the module is imported."""
    return {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for line in range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
    }


def statements(path: Path) -> set[int]:
    """The lines of a module at which a statement begins."""
    return set(coverage.Coverage(config_file=False, data_file=None).analysis2(str(path))[1])


def make_record(folder: Path, *, root: Path, commit: str, jobs: int) -> None:
    """Run the cases of `CIRCLES`, a process a folder of tests; what was recorded before is kept.

    Cases that fail are left out of the record, with a line that says so.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "commit").write_text(commit)
    tests = [path for path in (root / "tests").iterdir() if any(path.glob("test_*.py"))]
    left: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for path in sorted(tests, key=_bytes, reverse=True):
        if not (folder / f"{path.name}.cases").exists():
            left.put(path)
    threads = [
        threading.Thread(target=_run_folders, args=(left, folder, root)) for _ in range(jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _bytes(tests: Path) -> int:
    return sum(path.stat().st_size for path in tests.glob("*.py"))


def _run_folders(left: queue.SimpleQueue[Path], folder: Path, root: Path) -> None:
    for path in _taken(left):
        command = [sys.executable, "-m", "pytest", "-p", "mutants.recorder", "-m", "not soak"]
        variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, PLUGINS)),
            "FRAZIL_RECORD": str(folder / path.name),
            "POLARS_MAX_THREADS": "1",
        }
        with (folder / f"{path.name}.log").open("w") as log:
            ended = subprocess.run(
                [*command, f"tests/{path.name}"],
                cwd=root,
                env=variables,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        failing = "" if ended.returncode in (0, 5) else f", not all passed: see {log.name}"
        print(f"recorded tests/{path.name}{failing}", flush=True)


def _taken(left: queue.SimpleQueue[Path]) -> Iterator[Path]:
    while True:
        try:
            yield left.get_nowait()
        except queue.Empty:
            return
