"""Records what the Java runtime in Spark 4.1 makes of the statements in tests/spark_sql/recorded.

Run as ``.venv41/bin/python interop/record_sql_cases.py [--check] [FILE …]``: the rows, the columns
and the kinds of refusals are written below each statement. ``--check`` writes nothing, and ends
with 1 where a file says something else. Files whose names begin with ``plain_`` are recorded from
Parquet tables of Spark itself, for what the Java runtime refuses.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "spark_sql"), str(ROOT / "tests"), str(Path(__file__).parent)]

from java_settings import SETTINGS  # noqa: E402
from sql_cases import RECORDED, Block, Case, Player, blocks_of, columns_of  # noqa: E402

_PLAIN = "plain_"
_COLUMN_ID = re.compile(r"#\d+L?")
"""What tells columns of a plan apart, another one at each run."""


@dataclass
class Recorder:
    """Runs cases on the engine that knows, and writes down what it says.

    Attributes:
        player: runs statements on that engine.
        stale: what a file says that is no longer so.
    """

    player: Player
    stale: list[str]

    def block(self, block: Block, where: str) -> list[str]:
        """The lines of a block, with what the engine says now."""
        case = block.case()
        if case is None or case.skips is not None:
            return block.lines
        where = f"{where}:{case.line}: {case.statement}"
        told, rows, refused = self._asked(case)
        if refused is not None:
            if case.kind != "error" and case.differs is None:
                self.stale.append(f"{where}\n    Java refuses: {refused}")
            if case.kind == "error" and case.differs is not None:
                self.stale.append(f"{where}\n    Java refuses too: {refused}")
        elif case.kind == "error" and case.differs is None:
            self.stale.append(f"{where}\n    Java runs it")
        if case.kind == "let" and rows:
            self.player.known[case.said] = rows[0].split("|")[0]
        if case.differs is not None:
            expected = list(case.rows) if case.said == "ordered" else sorted(case.rows)
            if case.kind == "rows" and (rows, told) == (expected, case.columns):
                self.stale.append(f"{where}\n    Java's rows are the same")
            return block.lines
        kept = [i for i, each in enumerate(block.lines) if each.startswith("----")]
        lines = block.lines[: kept[0]] if kept else block.lines
        if case.kind == "rows" and refused is None:
            return [*lines, f"---- {told}", *rows]
        if case.kind == "error" and refused is not None:
            return [*lines, f"---- {refused}"]
        return lines

    def _asked(self, case: Case) -> tuple[str | None, list[str], str | None]:
        try:
            found = self.player.sql(self.player.text(case), case.args)
            rows = case.texts(found.collect())
        except Exception as error:
            return None, [], _kind(error)
        return columns_of(found), rows if case.said == "ordered" else sorted(rows), None


def _kind(error: Exception) -> str:
    """The class of an error, and its condition or the first words that it says."""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition:
        return f"{type(error).__name__} {condition}"
    cause = getattr(error, "java_exception", None)
    if cause is not None:
        first = _COLUMN_ID.sub("#", str(cause.getMessage()).splitlines()[0])
        return f"{cause.getClass().getSimpleName()} {first[:90]}"
    return f"{type(error).__name__} {str(error).strip().splitlines()[0][:90]}"


@contextmanager
def java_spark(folder: Path) -> Iterator[Any]:
    """One Spark 4.1 with the Java runtime."""
    from pyspark.sql import SparkSession

    # Refusals are expected here; their stack traces are not of interest.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    builder = SparkSession.builder.master("local[2]").appName("frazil-sql-cases")
    for key, value in SETTINGS.items():
        builder.config(key, value)
    builder.config("spark.sql.warehouse.dir", str(folder / "spark"))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def _session_of(spark: Any, folder: Path, name: str) -> Any:
    """A session of one file alone: an empty lake, or an empty database of Spark's own."""
    session = spark.newSession()
    if name.startswith(_PLAIN):
        session.sql("DROP DATABASE IF EXISTS db CASCADE")
        session.sql("CREATE DATABASE db")
        return session
    place = folder / name
    place.mkdir()
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{place / 'catalog.db'}",
        ".jdbc.schema-version": "V1",
        ".jdbc.strict-mode": "true",
        ".warehouse": str(place),
        ".cache-enabled": "false",
    }
    for key, value in settings.items():
        session.conf.set(f"spark.sql.catalog.lake{key}", value)
    session.sql("CREATE NAMESPACE lake.db")
    session.sql("USE lake")
    return session


def recorded(spark: Any, folder: Path, file: Path) -> tuple[str, list[str]]:
    """A file's text as it should be, and what somebody has to look at."""
    session = _session_of(spark, folder, file.name)
    known = {"place": str(folder / "moved")}
    recorder = Recorder(Player(lambda text, args: session.sql(text, args), known=known), [])
    blocks = [recorder.block(each, file.name) for each in blocks_of(file.read_text())]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n", recorder.stale


def main() -> int:
    """Record the files that are named, or all of them."""
    parser = argparse.ArgumentParser(
        description="Record what the Java runtime makes of statements."
    )
    parser.add_argument("files", nargs="*", help="names of files; all of them without any")
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked = parser.parse_args()
    os.environ["TZ"] = "UTC"
    time.tzset()
    files = sorted(RECORDED.glob("*.test"))
    files = [each for each in files if not asked.files or each.name in asked.files]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, java_spark(Path(folder)) as spark:
        for file in files:
            text, stale = recorded(spark, Path(folder), file)
            changed = text != file.read_text()
            if changed and not asked.check:
                file.write_text(text)
            print(
                f"{file.name}: {'other' if changed else 'the same'}", *stale, sep="\n  ", flush=True
            )
            wrong += len(stale) + (changed and asked.check)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
