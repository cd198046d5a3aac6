"""Tables of many small files, and a model in plain Python of the rows that they hold."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.format.manifests import Content, DataFile
from frazil.format.values import to_bytes

DDL = "id bigint, part int, name string, v double"
NO_WAITS = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"}
ARROW = {"id": pa.int64(), "part": pa.int32(), "name": pa.string(), "v": pa.float64()}


def row(number: int, parts: int = 2) -> tuple[int, int, str | None, float]:
    """The row of a number; some names are NULL."""
    return (number, number % parts, None if number % 7 == 0 else f"n{number % 10}", number / 4)


class Modelled:
    """A table, and the rows that it has to hold.

    Attributes:
        rows: the rows, each with how often it is there.
    """

    def __init__(self, lake: Any, name: str = "t", *, version: int = 2, by: Any = (), **more: Any):
        self.lake = lake
        self.name = f"db.{name}"
        self.rows: Counter[tuple[Any, ...]] = Counter()
        properties = {**NO_WAITS, **more.pop("properties", {})}
        self.table = lake.create_table(
            self.name, DDL, format_version=version, partition_by=by, properties=properties, **more
        )

    def other(self) -> Any:
        """Another handle, as another process has it."""
        return self.lake.load_table(self.name)

    def append(self, *numbers: int, files: int = 1, table: Any = None) -> None:
        """Add rows in so many commits."""
        for part in range(files):
            self._append([row(number) for number in numbers[part::files]], table)

    def _append(self, rows: list[tuple[Any, ...]], table: Any) -> None:
        frame = self.lake.spark.createDataFrame(rows, DDL).coalesce(1)
        (table or self.table).append(frame)
        self.rows.update(rows)

    def delete(self, where: str, test: Any, table: Any = None) -> None:
        """Delete rows by the command, and those of the model by a test of a row."""
        (table or self.table).delete(where)
        self.forget(test)

    def forget(self, test: Any) -> None:
        """Take rows out of the model."""
        self.rows = Counter({r: n for r, n in self.rows.items() if not test(r)})

    def delete_by_keys(
        self,
        keys: dict[str, list[Any]],
        *,
        partition: tuple[Any, ...] = (),
        spec_id: int = 0,
        added: tuple[DataFile, ...] = (),
        table: Any = None,
    ) -> None:
        """Commit an equality delete file, as a stream of upserts does."""
        handle = table or self.table
        delete = equality_delete_file(handle, keys, partition=partition, spec_id=spec_id)
        handle.files.row_delta(added=added, added_deletes=[delete])
        names = list(keys)
        places = [list(ARROW).index(name) for name in names]
        gone = set(zip(*keys.values(), strict=True))
        wanted = dict(enumerate(partition)) if partition else {}
        self.forget(
            lambda r: (
                tuple(r[p] for p in places) in gone
                and (not wanted or r[1] == next(iter(wanted.values())))
            )
        )

    def check(self, **moment: Any) -> None:
        """Compare the table's rows with the model's."""
        found = self.other().scan(**moment).to_df().collect()
        assert Counter(tuple(each) for each in found) == self.rows

    def data_files(self) -> list[dict[str, Any]]:
        """The data files as they are now."""
        return self.other().inspect.data_files().to_dicts()

    def delete_files(self) -> list[dict[str, Any]]:
        """The delete files and vectors as they are now."""
        return self.other().inspect.delete_files().to_dicts()


def equality_delete_file(
    table: Any, keys: dict[str, list[Any]], *, partition: tuple[Any, ...] = (), spec_id: int = 0
) -> DataFile:
    """Write an equality delete file with its bounds."""
    fields = [table.schema.find_field(name) for name in keys]
    arrow = pa.schema(
        [
            pa.field(f.name, ARROW[f.name], True, {"PARQUET:field_id": str(f.field_id)})
            for f in fields
        ]
    )
    columns = [pa.array(keys[f.name], ARROW[f.name]) for f in fields]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(columns, schema=arrow), sink)
    data = sink.getvalue().to_pybytes()
    path = f"{table.location}/data/equality-{uuid.uuid4()}.parquet"
    table.io.write(path, data)
    known = {f: [v for v in keys[f.name] if v is not None] for f in fields}
    return DataFile(
        content=Content.EQUALITY_DELETES,
        file_path=path,
        spec_id=spec_id,
        partition=partition,
        record_count=len(columns[0]),
        file_size_in_bytes=len(data),
        equality_ids=tuple(f.field_id for f in fields),
        value_counts={f.field_id: len(columns[0]) for f in fields},
        null_value_counts={f.field_id: len(columns[0]) - len(known[f]) for f in fields},
        lower_bounds={f.field_id: to_bytes(f.field_type, min(v)) for f, v in known.items() if v},
        upper_bounds={f.field_id: to_bytes(f.field_type, max(v)) for f, v in known.items() if v},
    )


def when(groups_done: int, do: Any) -> Any:
    """A listener that does something once, when so many groups are rewritten and none committed."""
    happened: list[bool] = []

    def listen(progress: Any) -> None:
        if progress.groups_done >= groups_done and not happened:
            happened.append(True)
            do()

    return listen


def files_on_disk(table: Any) -> set[str]:
    """Every file in the table's data folder."""
    return {info.path for info in table.io.list(f"{table.location}/data")}


def files_in_metadata(table: Any) -> set[str]:
    """Every data and delete file that any snapshot of the table has."""
    frames = (table.inspect.all_data_files(), table.inspect.all_delete_files())
    return {path for frame in frames for path in frame["file_path"]}
