"""Processes that commit to a table, and are killed on the way.

kill <catalog> <folder>: commits in children that are killed before their first, second, …
storage call, until one lives; prints one JSON line for each.
interrupt <catalog> <folder> <count>: the same, with children that are killed after a while each,
wherever they are then: inside a call, a write or a lock.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from table_cases import data_file, open_catalog

from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle


class KillingIO(FileIO):
    """Kills its process before the n-th call to the store."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self._left = calls

    def _run(self, verb: str, path: str, on_disk: Any, on_store: Any) -> Any:
        self._left -= 1
        if self._left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._run(verb, path, on_disk, on_store)


def commits(table: TableHandle, step: int, log: Path) -> None:
    """An append and an overwrite of two files each; the overwrite replaces the append's."""
    added = [data_file(f"a{step}-{part}", f"day{step}") for part in "xy"]
    table.files.append(added)
    acknowledge(log, "append")
    rewritten = [data_file(f"b{step}-{part}", f"day{step}") for part in "xy"]
    table.files.overwrite(rewritten, removed=added)
    acknowledge(log, "append overwrite")


def acknowledge(log: Path, text: str) -> None:
    """Write in one step, so that a killed process leaves what it had written before."""
    new = log.with_suffix(".new")
    new.write_text(text)
    new.replace(log)


def kill(kind: str, folder: str) -> None:
    """Children that die one storage call later each time; after each, another one commits."""
    for step in range(1, 200):
        if not killed(kind, folder, step, lambda step=step: opened(kind, folder, step)):
            return


def interrupt(kind: str, folder: str, count: int) -> None:
    """Children that the system kills after a share of the time that a whole one takes."""
    whole = 0.0
    for warm_up in (-1, 0):
        started = time.monotonic()
        assert not killed(kind, folder, warm_up, lambda: opened(kind, folder))
        whole = time.monotonic() - started

    def opened_for(seconds: float) -> TableHandle:
        table = opened(kind, folder)
        # The alarm ends the process as a kill does: nothing of it runs any more.
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return table

    for step in range(1, count + 1):
        killed(kind, folder, step, lambda step=step: opened_for(whole * step / count))


def killed(kind: str, folder: str, step: int, open_table: Callable[[], TableHandle]) -> bool:
    """Whether a child died over its commits; prints the outcome, and then another one commits."""
    log = Path(folder) / f"acknowledged-{step}"
    log.touch()
    status = in_child(lambda: commits(open_table(), step, log))
    outcome = {
        "step": step,
        "killed": os.WIFSIGNALED(status),
        "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "acknowledged": log.read_text().split(),
    }
    print(json.dumps(outcome), flush=True)
    if outcome["killed"]:
        after = in_child(lambda: opened(kind, folder).set_properties(step=str(step)))
        if after != 0:
            sys.exit(f"after step {step} the table takes no commits any more")
    return bool(outcome["killed"])


def opened(kind: str, folder: str, calls: int | None = None) -> TableHandle:
    """The table, in a process that dies before so many storage calls, if given."""
    catalog = open_catalog(kind, folder, io=None if calls is None else KillingIO(calls))
    return TableHandle(catalog, catalog.load_table("db.t"))


def in_child(work: Callable[[], None]) -> int:
    """How a process that does the work ended; 3 stands for an exception."""
    return os.waitpid(forked(work), 0)[1]


def forked(work: Callable[[], None]) -> int:
    """A process that does the work."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    return child


if __name__ == "__main__":
    mode, kind, folder, *rest = sys.argv[1:]
    if mode == "kill":
        kill(kind, folder)
    else:
        interrupt(kind, folder, int(rest[0]))
