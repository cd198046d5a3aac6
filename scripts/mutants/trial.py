"""What cases say of a copy: which one failed, or that none did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from mutants.cases import Case
from mutants.trees import Tree

SECONDS_OF_A_CASE = 90.0
"""A case hangs that takes so long and ten times what it took once: a Spark may start for it."""
SECONDS_IN_ALL = 300.0
"""A run ends after so long. Both are longer where more waits for the cores than they can do."""
MOST_LOAD = 4.0


@dataclass
class Verdict:
    """What became of a run.

    Attributes:
        failed: the cases that failed, and the circle of each.
        began: how many cases began.
        hung: the last case did not end.
        crashed: the process ended as no process of pytest does.
    """

    failed: dict[str, str] = field(default_factory=dict)
    began: list[str] = field(default_factory=list)
    hung: bool = False
    crashed: bool = False

    @property
    def is_good(self) -> bool:
        """Whether nothing was found."""
        return not (self.failed or self.hung or self.crashed)


def try_cases(
    tree: Tree,
    cases: Sequence[Case],
    *,
    new_in: Collection[str] = (),
    known: Collection[str] = (),
    all_of_them: bool = False,
    patience: float = SECONDS_OF_A_CASE,
    stop: threading.Event,
) -> Verdict:
    """Run cases in a process of its own, to the first failure.

    Args:
        new_in: files of tests of which the cases that are not `known` run too, before the others.
        all_of_them: go on after a failure.
        patience: seconds after which a case hangs that took none once.
        stop: ends the run when it is set.
    """
    told = tree.folder / "told.jsonl"
    told.unlink(missing_ok=True)
    chosen = {
        "ids": [case.id for case in cases],
        "known": sorted(known) if new_in else None,
        "told": str(told),
    }
    (tree.folder / "chosen.json").write_text(json.dumps(chosen))
    files = dict.fromkeys([*new_in, *(case.file for case in cases)])
    there = [name for name in files if (tree.folder / name).exists()]
    if not there:
        return Verdict()
    command = [str(tree.python), "-m", "pytest", "-p", "mutants.chosen", "--tb=short"]
    # The copy's Python finds all by itself; a program that the tests start is to find no more.
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with (tree.folder / "printed.txt").open("wb") as printed:
        process = subprocess.Popen(
            [*command, *([] if all_of_them else ["-x"]), *there],
            cwd=tree.folder,
            env={
                **variables,
                "FRAZIL_CHOSEN": str(tree.folder / "chosen.json"),
                "POLARS_MAX_THREADS": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            seconds = {case.id: case.seconds for case in cases}
            bound = inf if all_of_them else SECONDS_IN_ALL
            late = _wait(process, told, seconds, patience=patience, bound=bound, stop=stop)
        finally:
            _end(process)
    verdict = Verdict(hung=late == "case")
    for event in _events(told):
        if "began" in event:
            verdict.began.append(event["began"])
        else:
            verdict.failed.setdefault(event["failed"], event["circle"])
    verdict.crashed = late is None and process.returncode not in (0, 1, 5)
    return verdict


def _wait(
    process: subprocess.Popen[bytes],
    told: Path,
    seconds: dict[str, float],
    *,
    patience: float,
    bound: float,
    stop: threading.Event,
) -> str | None:
    """Wait for the process; `case` where one hangs, `all` where all take too long."""
    began = since = time.monotonic()
    size, last = 0, ""
    while True:
        try:
            process.wait(0.3)
        except subprocess.TimeoutExpired:
            pass
        else:
            return None
        now, load = time.monotonic(), os.getloadavg()[0] / (os.cpu_count() or 1)
        busy = min(MOST_LOAD, max(1.0, load))
        if told.exists() and told.stat().st_size != size:
            size, since = told.stat().st_size, now
            last = next((event["began"] for event in _events(told)[::-1] if "began" in event), "")
        known = patience + 10 * seconds.get(last, 0.0) if last else SECONDS_OF_A_CASE
        if now - since > busy * known:
            return "case"
        if stop.is_set() or now - began > busy * bound:
            return "all"


def _events(told: Path) -> list[dict[str, Any]]:
    if not told.exists():
        return []
    return [
        json.loads(line) for line in told.read_text().splitlines(keepends=True) if line[-1:] == "\n"
    ]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a run: by SIGTERM, on which the tests end their servers."""
    for signal_sent, seconds in ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0)):
        if process.poll() is None:
            os.killpg(process.pid, signal_sent)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                continue
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
