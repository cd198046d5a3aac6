"""What starts, in a process of its own: `python -m bench.started prompt`, or `job` and a folder.

It prints its CPU seconds. `ours` and `theirs`, with a folder and the address of a store, append one
file to a table there and print seconds. What is measured is imported where it is measured.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

TABLE = "bench.starting"


def _prompt() -> None:
    """Draw the prompt; tell what the process took until then, before Spark starts behind it."""
    # As the command line does, which imports the command before the prompt.
    import_module("frazil.cli.commands.sql")
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    from frazil.cli.app import Settings
    from frazil.cli.output import Output
    from frazil.cli.sql.engine import Engine
    from frazil.cli.sql.prompt import Prompt

    class Told(Engine):
        def start(self) -> None:
            print(time.process_time(), flush=True)
            os._exit(0)

    with create_pipe_input() as keys:
        Prompt(Told(Settings()), Output(), str, keys=keys, screen=DummyOutput()).run()


def _job(folder: Path) -> None:
    """Load a table in a process whose session is there."""
    from bench.context import CATALOG
    from bench.sessions import start

    spark = start(folder)
    started = time.process_time()
    import frazil

    with frazil.connect(spark, warehouse=str(folder), name=CATALOG) as lake:
        lake.load_table(TABLE)
        print(time.process_time() - started)
    spark.stop()


def _append(side: str, folder: Path, endpoint: str) -> None:
    """Connect and append a file to a store, in a process whose session is there."""
    from tests.s3_counted import CountedStore

    from bench.sessions import start

    spark = start(folder, on_stores=True)
    started = time.perf_counter()
    from bench.stores_sides import Ours, Side, Theirs

    sides: dict[str, Callable[..., Side]] = {"ours": Ours, "theirs": Theirs}
    made = sides[side](spark, CountedStore(endpoint), folder)
    made.sql("INSERT INTO db.t VALUES (1000, 1, 'x')")
    print(time.perf_counter() - started)
    spark.stop()


if __name__ == "__main__":
    if sys.argv[1] == "prompt":
        _prompt()
    elif sys.argv[1] == "job":
        _job(Path(sys.argv[2]))
    else:
        _append(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
