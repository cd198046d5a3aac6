"""The Sparks and Pythons that Frazil runs on: tests it on them, and tells which it ran on.

    versions.py run                        both circles on every Spark and every Python that is here
    versions.py run --slice --spark 4.0    a few tests of each kind on Spark 4.0
    versions.py run --again --spark 4.0    what failed in the last run, once it is mended
    versions.py of-commit                  the slice on one of them, which the commit's hash chooses
    versions.py table                      README's table, from what ran
    versions.py table --write              puts it into README and the page that shows it

What `run` ran is noted in requirements/ran.json: of each Spark and Python the largest run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
RAN: Final = ROOT / "requirements" / "ran.json"
TOLD: Final = ROOT / ".versions"
"""What pytest told of the last run on each Spark and Python."""
SPARKS: Final = {
    f"{path.stem[5]}.{path.stem[6:]}": path for path in sorted(ROOT.glob("requirements/spark*.txt"))
}
"""What is installed for each Spark, by its first two numbers."""
EVERYDAY: Final = max(SPARKS)
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")

SLICE: Final = (
    "tests/docs/test_docs_pages.py::test_the_blocks_of_a_page_run_in_order[README.md]",
    "tests/maintenance/test_statistics.py",
    "tests/spark_catalog/test_catalog_attached.py",
    "tests/spark_changes/test_spark_changes_cases.py",
    "tests/spark_deletes/test_spark_deletes_written.py",
    "tests/spark_read/test_spark_read_file_log.py",
    "tests/spark_row_level/test_row_level_merge_ways.py",
    "tests/spark_sql/test_sql_repeated.py",
    "tests/spark_stream/test_stream_rows.py",
    "tests/spark_table/test_spark_table_metadata_frames.py::test_both_roads_give_equal_frames",
    "tests/spark_table/test_spark_table_metadata_frames.py::test_a_count_starts_no_python",
    "tests/spark_write/test_spark_write_files.py::test_partitions_and_names_of_any_kind",
    "tests/spark_write/test_spark_write_files.py::test_a_task_that_fails_leaves_no_file",
    "tests/spark_write/test_spark_write_transforms.py",
)
"""A few quick tests of each kind of work that a Spark does for Frazil."""

ALL, PART = "all", "slice"
_BY_CI: Final = "all: at each change, by CI"
_PAGES: Final = (ROOT / "README.md", ROOT / "docs" / "howto" / "managed-spark.md")
_SHOWN: Final = re.compile(
    r"(<!-- versions: scripts/versions.py table -->\n).*?(<!-- versions end -->)", re.DOTALL
)
_NEEDED: Final = "import ensurepip, sqlite3, ssl, sys, venv; print('%d.%d' % sys.version_info[:2])"


@dataclass(frozen=True, slots=True, order=True)
class Ran:
    """What ran on a Spark and a Python.

    Attributes:
        spark, python: their versions.
        what: `ALL` of the first two circles, or `PART` of them.
        passed, skipped, failed: how many cases.
    """

    spark: str
    python: str
    what: str
    passed: int
    skipped: int
    failed: int

    @property
    def cell(self) -> tuple[str, str]:
        """The first two numbers of the versions."""
        return _minor(self.spark), _minor(self.python)

    def __str__(self) -> str:
        said = "all" if self.what == ALL else "a part"
        if self.failed:
            return f"{said}: {self.failed} of {self.passed + self.failed} cases fail"
        return f"{said}: {self.passed} cases"


def pythons_here() -> dict[str, str]:
    """The Pythons of this machine that an environment can be made of, by their first numbers.

    The first is what environments are made of where nobody says which.
    """
    found: dict[str, str] = {}
    given = os.environ.get("PYTHON")
    for candidate in (given or "/usr/bin/python3", given or "python3", *_others()):
        number = _answer([candidate, "-c", _NEEDED])
        if number in PYTHONS:
            found.setdefault(number, candidate)
    return found


def _others() -> Iterator[str]:
    for number in PYTHONS:
        yield from (path for path in [shutil.which(f"python{number}")] if path)
        yield from map(str, Path.home().glob(f".pyenv/versions/{number}.*/bin/python3"))


def _answer(command: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def environment(spark: str, python: str, pythons: dict[str, str]) -> str:
    """Make the environment of a Spark and a Python where it is not there; return its Python."""
    requirements = SPARKS[spark]
    number = spark.replace(".", "")
    if python == next(iter(pythons)):
        folder = ".venv" if spark == EVERYDAY else f".venv{number}"
        subprocess.run(["make", f"{folder}/.ready"], cwd=ROOT, check=True)
    else:
        folder = f".venv{number}-python{python}"
        ready = ROOT / folder / ".ready"
        if not ready.exists() or ready.read_bytes() != requirements.read_bytes():
            subprocess.run(
                ["scripts/environment.sh", folder, str(requirements.relative_to(ROOT))],
                cwd=ROOT,
                env={**os.environ, "PYTHON": pythons[python]},
                check=True,
            )
    return f"{folder}/bin/python"


def run(spark: str, python: str, what: str, pythons: dict[str, str], *, again: bool = False) -> Ran:
    """Run the tests on a Spark and a Python.

    Args:
        again: those alone that failed in the last such run; the others count as they passed then.
    """
    started = time.monotonic()
    program = environment(spark, python, pythons)
    versions = "import platform, pyspark; print(pyspark.__version__, platform.python_version())"
    numbers = (_answer([str(ROOT / program), "-c", versions]) or f"{spark} {python}").split()
    told = TOLD / f"{spark}-{python}-{what}.xml"
    before = suite_of(told) if again else None
    cases = failed_cases(before) if before is not None else SLICE if what == PART else ()
    print(f"Spark {numbers[0]} on Python {numbers[1]}: {what}", flush=True)
    if before is None or cases:
        TOLD.mkdir(exist_ok=True)
        told.unlink(missing_ok=True)
        circle = "ci" if what == ALL else "test"
        subprocess.run(
            ["scripts/test.sh", circle, program, f"--junitxml={told}", *cases],
            cwd=ROOT,
            env={"PROCESSES": "2", **os.environ},
            check=False,
        )
    suite = suite_of(told)
    if before is not None and cases:
        suite = with_passed(before, told)
    ran = ran_as_told(suite, numbers[0], numbers[1], what)
    print(f"Spark {ran.spark} on Python {ran.python}: {ran}; {time.monotonic() - started:.0f} s")
    return ran


def suite_of(told: Path) -> ElementTree.Element:
    """What pytest told in a file."""
    suite = ElementTree.parse(told).getroot().find("testsuite") if told.exists() else None
    if suite is None:
        raise SystemExit(f"pytest told nothing of what it ran in {told}")
    return suite


def failed_cases(suite: ElementTree.Element) -> list[str]:
    """The cases that failed, as pytest takes them."""
    return [
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        for case in suite.iter("testcase")
        if _has_failed(case)
    ]


def with_passed(before: ElementTree.Element, told: Path) -> ElementTree.Element:
    """What pytest told, and what passed before; the file holds both then."""
    suite = suite_of(told)
    suite.extend(case for case in before.iter("testcase") if not _has_failed(case))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.ElementTree(root).write(told)
    return suite


def _has_failed(case: ElementTree.Element) -> bool:
    return any(case.find(kind) is not None for kind in ("failure", "error"))


def ran_as_told(suite: ElementTree.Element, spark: str, python: str, what: str) -> Ran:
    """What ran, as pytest told it."""
    cases = list(suite.iter("testcase"))
    failed = sum(map(_has_failed, cases))
    skipped = sum(case.find("skipped") is not None for case in cases)
    return Ran(spark, python, what, len(cases) - skipped - failed, skipped, failed)


def recorded() -> list[Ran]:
    """What ran on each Spark and Python."""
    return [Ran(**each) for each in json.loads(RAN.read_text())] if RAN.exists() else []


def record(ran: Ran) -> None:
    """Note what ran, unless more did before on the same versions."""
    known = {each.cell: each for each in recorded()}
    before = known.get(ran.cell)
    is_less = before is not None and before.what == ALL and ran.what == PART
    if before is None or not is_less or before.spark != ran.spark:
        known[ran.cell] = ran
    lines = (json.dumps(asdict(each)) for each in sorted(known.values()))
    RAN.write_text("[\n  " + ",\n  ".join(lines) + "\n]\n")


def cell_of_commit(commit: str, pythons: Sequence[str]) -> tuple[str, str]:
    """Which Spark and Python a commit's hash chooses, of those that are not everyday's."""
    cells = [(spark, python) for spark in SPARKS for python in pythons]
    cells.remove((EVERYDAY, pythons[0]))
    return cells[int(commit, 16) % len(cells)]


def table() -> str:
    """The table of README: a line a Spark, a column a Python."""
    known = {each.cell: each for each in recorded()}
    pythons = sorted({python for _, python in known}, key=_parts)
    sparks = sorted({spark for spark, _ in known}, key=_parts, reverse=True)
    lines = [["Spark", *(f"Python {python}" for python in pythons)]]
    for spark in sparks:
        cells = [known.get((spark, python)) for python in pythons]
        number = max((each.spark for each in cells if each is not None), key=_parts)
        said = ["not tried" if each is None else str(each) for each in cells]
        if spark == EVERYDAY:
            said[pythons.index(PYTHONS[0])] = _BY_CI
        lines.append([number, *said])
    head, *rest = ("| " + " | ".join(line) + " |\n" for line in lines)
    return head + "|---" * len(lines[0]) + "|\n" + "".join(rest)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def main(arguments: Sequence[str]) -> int:
    """Do what is asked for; return how many runs failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    asked = commands.add_parser("run")
    asked.add_argument("--spark", choices=SPARKS, action="append")
    asked.add_argument("--python", choices=PYTHONS, action="append")
    asked.add_argument("--slice", action="store_true")
    asked.add_argument("--again", action="store_true", help="what failed in the last run, alone")
    commands.add_parser("of-commit").add_argument("commit", nargs="?", default="HEAD")
    commands.add_parser("table").add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    if given.command == "table":
        print(table(), end="")
        for page in _PAGES if given.write else ():
            page.write_text(_SHOWN.sub(rf"\1\n{table()}\n\2", page.read_text()))
        return 0
    pythons = pythons_here()
    if given.command == "of-commit":
        commit = _answer(["git", "-C", str(ROOT), "rev-parse", given.commit]) or given.commit
        spark, python = cell_of_commit(commit, list(pythons))
        return min(run(spark, python, PART, pythons).failed, 1)
    failed = 0
    for spark in given.spark or SPARKS:
        for python in given.python or pythons:
            if python not in pythons:
                print(f"there is no Python {python} here", file=sys.stderr)
                return 2
            what = PART if given.slice else ALL
            ran = run(spark, python, what, pythons, again=given.again)
            record(ran)
            failed += bool(ran.failed)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
