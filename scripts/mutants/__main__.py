"""Break `src/frazil` in places, one at a time, and see whether the tests tell."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from mutants.cases import CIRCLES, ROOT
from mutants.equivalents import reasons
from mutants.record import Record, make_record, statements
from mutants.run import Outcome, Run, all_sites, difference, faults, place, report, summary
from mutants.sequence import sequence
from mutants.sites import Site


def main() -> int:
    """Run what the arguments ask for; the exit status."""
    # In the background a shell ignores the one, and on the other nothing would be cleaned up.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    options = _arguments()
    commit = _git("rev-parse", "HEAD")
    if options.what == "run" and _git("status", "--porcelain", "src", "tests"):
        print(
            "the copies are made of the last commit: src or tests have changes that are not in it"
        )
        return 2
    if options.what == "show":
        for site in islice(_order(options, commit), options.count):
            print(place(site), difference(site, (ROOT / site.path).read_bytes()), sep="\n")
        return 0
    folder = options.record or ROOT / ".mutants" / "records" / _key()
    if not options.record:
        make_record(folder, root=ROOT, commit=commit, jobs=options.jobs)
    record = Record(folder, root=ROOT, now=commit)
    if options.what == "lines":
        _print_lines(record, missing=options.missing)
        return 0
    return _run(options, record, commit)


def _run(options: argparse.Namespace, record: Record, commit: str) -> int:
    sites = list(islice(_order(options, commit), options.count))
    new_in = _git("diff", "--name-only", record.commit, commit, "--", "tests").split()
    tests = [name for name in new_in if Path(name).name.startswith("test_")]
    run = Run(ROOT, commit, record, options.jobs, tests, all_new=bool(options.at))
    done: list[Outcome] = []
    for outcome in run.outcomes(sites):
        done.append(outcome)
        print(report(outcome, root=ROOT), flush=True)
    text, enough = summary(done)
    print(f"\n{text} (seed {_seed(options, commit)})")
    return 0 if enough else 1


def _order(options: argparse.Namespace, commit: str) -> Iterator[Site]:
    sites = all_sites(ROOT)
    if options.at:
        path, _, line = options.at.partition(":")
        at = [site for site in sites if site.path == path]
        sites = [site for site in at if not line or site.line == int(line)]
    return faults(sequence(sites, int(_seed(options, commit), 16)), root=ROOT, listed=reasons())


def _print_lines(record: Record, *, missing: bool) -> None:
    """How many lines each circle ran, with those before it."""
    every, ran = 0, dict.fromkeys(CIRCLES, 0)
    for path in sorted((ROOT / "src" / "frazil").rglob("*.py")):
        name, lines = path.relative_to(ROOT).as_posix(), statements(path)
        every += len(lines)
        for n, circle in enumerate(CIRCLES, 1):
            found = lines & record.lines_run(name, CIRCLES[:n])
            ran[circle] += len(found)
        if missing and lines - found:
            print(f"{name}: {', '.join(map(str, sorted(lines - found)))}")
    for n, circle in enumerate(CIRCLES, 1):
        names = " and ".join(f"`make {name}`" for name in CIRCLES[:n])
        print(f"{names}: {ran[circle]} of {every} lines, {ran[circle] / every:.2%}")


def _seed(options: argparse.Namespace, commit: str) -> str:
    return options.seed or commit[:8]


def _key() -> str:
    """A name for what the tests and sources of the last commit are."""
    return "-".join(_git("rev-parse", f"HEAD:{name}")[:12] for name in ("src", "tests"))


def _git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return run.stdout.decode().strip()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        choices=["run", "show", "lines"],
        default="run",
        help="run: faults one at a time (default); show: print them; lines: what each circle ran",
    )
    parser.add_argument("--count", type=int, default=60, help="so many faults")
    parser.add_argument("--seed", help="hexadecimal digits; the first eight of the commit's hash")
    parser.add_argument("--at", metavar="PATH[:LINE]", help="only faults of one module or line")
    parser.add_argument("--record", type=Path, help="a folder of an older commit's record")
    parser.add_argument("--jobs", type=int, default=2, help="so many at once")
    parser.add_argument("--missing", action="store_true", help="the lines that no case ran, too")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
