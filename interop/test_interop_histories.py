"""Random histories: every snapshot by Frazil, by the Java runtime and by plain Python rows.

Row-level commands are among the commits.

`changes` between every two snapshots are the differences of their rows; reads under a predicate and
counts are those of the Python rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from history_commands import CommandHistory, CommandsFirst
from history_files import FileMaker
from history_machine import History
from history_oracle import Field, State, counted, leaves
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from interop_limits import NULL_KEYS_IN_STRUCTS
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.spark.lake import Lake

_NUMBERS = count()
_SETTINGS = settings(
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


def _json(df: DataFrame, key: int, labels: Sequence[str] = ()) -> DataFrame:
    """The rows as JSON, under a key that tells them from those of other frames."""
    columns = [name for name in df.columns if not name.startswith("_")]
    row = F.struct(*(F.col(f"`{name}`") for name in columns))
    text = F.to_json(row, {"ignoreNullFields": "false"})
    return df.select(F.lit(key).alias("key"), text.alias("row"), *labels)


def _collected(frames: Sequence[DataFrame]) -> dict[int, list[Any]]:
    """The rows of all frames, read in one job, by their keys."""
    found: dict[int, list[Any]] = {}
    for row in reduce(DataFrame.unionAll, frames).collect():
        found.setdefault(row["key"], []).append(row)
    return found


def _state(fields: Sequence[Field], rows: Sequence[Any]) -> State:
    return counted((json.loads(row["row"], parse_float=Decimal) for row in rows), fields)


def check_snapshots(history: History, read: Callable[[int], DataFrame]) -> None:
    """Assert that a reader finds the oracle's rows in every snapshot."""
    snapshots = history.oracle.snapshots
    found = _collected([_json(read(s.snapshot_id), n) for n, s in enumerate(snapshots)])
    for number, snapshot in enumerate(snapshots):
        assert _state(snapshot.fields, found.get(number, [])) == snapshot.state(), number


def check_questions(history: History, read: Callable[[int, str], DataFrame]) -> None:
    """Assert that filtered reads are the oracle's rows for which the predicate is true."""
    asked, snapshots = history.asked, history.oracle.snapshots
    if not asked:
        return
    frames = [
        _json(read(snapshots[each.snapshot].snapshot_id, each.question.text), number)
        for number, each in enumerate(asked)
    ]
    found = _collected(frames)
    for number, each in enumerate(asked):
        snapshot = snapshots[each.snapshot]
        rows = tuple(row for row in snapshot.rows if each.question.test(row))
        expected = replace(snapshot, rows=rows).state()
        assert _state(snapshot.fields, found.get(number, [])) == expected, each


def check_counts(history: History, count: Callable[[int], int]) -> None:
    """Assert that every snapshot holds as many rows as the oracle's."""
    for number, snapshot in enumerate(history.oracle.snapshots):
        assert count(snapshot.snapshot_id) == len(snapshot.rows), number


def check_changes(history: History) -> None:
    """Assert that changes lead from every snapshot's rows to those of every later one's."""
    snapshots = history.oracle.snapshots
    pairs = [(a, b) for b in range(len(snapshots)) for a in range(-1, b)]
    for end in range(len(snapshots)):
        fields = snapshots[end].fields
        states = [Counter(), *(snapshot.state(fields) for snapshot in snapshots[: end + 1])]
        chosen = [(number, pair) for number, pair in enumerate(pairs) if pair[1] == end]
        frames = []
        for number, (start, _) in chosen:
            first = None if start < 0 else snapshots[start].snapshot_id
            changes = history.table.changes(first, snapshots[end].snapshot_id)
            frames.append(_json(changes, number, ["_change_type", "_change_ordinal"]))
        found = _collected(frames)
        for number, (start, _) in chosen:
            told: dict[tuple[str, int], list[Any]] = {}
            for row in found.get(number, []):
                told.setdefault((row["_change_type"], row["_change_ordinal"]), []).append(row)
            expected = {}
            for ordinal, place in enumerate(range(start + 1, end + 1)):
                before, after = states[place], states[place + 1]
                expected["INSERT", ordinal] = after - before
                expected["DELETE", ordinal] = before - after
            counts = {key: _state(fields, rows) for key, rows in told.items()}
            assert counts == {key: rows for key, rows in expected.items() if rows}, (start, end)
            whole = Counter(states[start + 1])
            for (kind, _), rows in counts.items():
                whole.update(rows) if kind == "INSERT" else whole.subtract(rows)
            assert +whole == states[end + 1]
            assert min(whole.values(), default=0) >= 0


def _machine(
    spark: Any, lake: Lake, folder: Path, base: type[History] = CommandHistory
) -> type[History]:
    class Tables(base):  # type: ignore[misc, valid-type]
        def open_table(self, ddl: str, version: int, properties: dict[str, str]) -> Any:
            self.name = f"db.history_{next(_NUMBERS)}"
            return lake.create_table(self.name, ddl, format_version=version, properties=properties)

        def new_folder(self) -> Path:
            made = folder / str(next(_NUMBERS))
            made.mkdir()
            return made

        def check(self) -> None:
            table = lake.load_table(self.name)
            check_snapshots(self, lambda chosen: table.scan(snapshot_id=chosen).to_df())
            own = table.to_df().schema
            theirs = spark.table(f"java_sql.{self.name}").schema
            assert own.simpleString() == theirs.simpleString()
            # The Java runtime does not compare keys in structs: test_null_keys_in_structs.
            if not self.has_nested_keys:
                check_snapshots(
                    self,
                    lambda chosen: spark.read.option("versionAsOf", str(chosen)).table(
                        f"java_sql.{self.name}"
                    ),
                )
            check_questions(
                self, lambda chosen, where: table.scan(snapshot_id=chosen, where=where).to_df()
            )
            check_counts(self, lambda chosen: table.scan(snapshot_id=chosen).count())
            check_changes(self)

    return Tables


@pytest.mark.interop
def test_histories(spark: Any, sql_lake: Lake, tmp_path: Path) -> None:
    machine = _machine(spark, sql_lake, tmp_path)
    few = settings(_SETTINGS, max_examples=2, stateful_step_count=5, derandomize=True)
    run_state_machine_as_test(machine, settings=few)


@pytest.mark.interop
def test_histories_of_commands(spark: Any, sql_lake: Lake, tmp_path: Path) -> None:
    """Each history begins with a delete, an update, an upsert and a merge."""
    machine = _machine(spark, sql_lake, tmp_path, CommandsFirst)
    few = settings(_SETTINGS, max_examples=2, stateful_step_count=2, derandomize=True)
    run_state_machine_as_test(machine, settings=few)


@pytest.mark.soak
def test_many_histories(spark: Any, sql_lake: Lake, tmp_path: Path) -> None:
    machine = _machine(spark, sql_lake, tmp_path)
    many = settings(_SETTINGS, max_examples=20, stateful_step_count=10)
    run_state_machine_as_test(machine, settings=many)


@pytest.mark.interop
def test_null_keys_in_structs(spark: Any, sql_lake: Lake, tmp_path: Path) -> None:
    """A NULL struct implies NULL fields (rule 231); the Java runtime has limits there."""
    ddl = "id long, a struct<x: int, y: string>"
    held = [(0, "q"), None, (5, "p"), (None, "q")]
    rows = [{1: n, 2: None if a is None else {3: a[0], 4: a[1]}} for n, a in enumerate(held)]
    left = {}
    for number, keys in enumerate([(0, 5), (None,), (0, None)]):
        table = sql_lake.create_table(f"db.struct_keys_{number}", ddl)
        folder = tmp_path / str(number)
        folder.mkdir()
        files = FileMaker(folder)
        metadata = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
        fields = metadata["schemas"][0]["fields"]
        table.files.append([files.data(fields, (0, ()), rows, stats=True).file])
        (x,) = [way for way in leaves(fields) if way[-1]["name"] == "x"]
        made = files.keys([x], [(key,) for key in keys], (0, ()), is_global=True, stats=True)
        table.files.row_delta(added_deletes=[made.file])
        java = spark.table(f"java_sql.db.struct_keys_{number}")
        left[keys] = [sorted(row.id for row in df.collect()) for df in (table.to_df(), java)]
    assert left == {
        (0, 5): [[1, 3], [1, 3]],
        (None,): [[0, 2], [0, 1, 2]],
        (0, None): [[2], [1, 2, 3]],
    }, NULL_KEYS_IN_STRUCTS.reason
