"""A table whose data and delete files are written here, with its rows kept beside it in memory.

The model applies deletes by the rules 176-178 to lists of rows, one row at a time; it shares no
code with Frazil's reader.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.format.manifests import Content, DataFile
from frazil.format.puffin import PuffinBuilder, deletion_vector_to_bytes

DDL = "id bigint, s string, x double, m map<string, int>"
COLUMNS = ("id", "s", "x")
_ARROW = {1: pa.int64(), 2: pa.string(), 3: pa.float64()}


def _field(name, kind, field_id):
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def _map(first):
    key, value = _field("key", pa.string(), first), _field("value", pa.int32(), first + 1)
    return pa.map_(key.with_nullable(False), value)


SCHEMA = pa.schema(
    [
        *(_field(name, _ARROW[i], i) for i, name in enumerate(COLUMNS, 1)),
        _field("m", _map(5), 4),
    ]
)
POSITIONS = pa.schema(
    [_field("file_path", pa.string(), 2147483546), _field("pos", pa.int64(), 2147483545)]
)


def shown(row):
    """A row such that NaN equals NaN, -0.0 differs from 0.0 and maps have no order."""
    return tuple(
        repr(value) if isinstance(value, float)
        else tuple(sorted(value.items())) if isinstance(value, dict)
        else value
        for value in row
    )  # fmt: skip


@dataclass
class Data:
    """A live data file."""

    file: DataFile
    rows: list[tuple]
    sequence: int = -1


@dataclass
class Delete:
    """A live delete file: positions by path, or keys of some columns (by place)."""

    file: DataFile
    positions: set[tuple[str, int]] = field(default_factory=set)
    columns: tuple[int, ...] = ()
    keys: set[tuple] = field(default_factory=set)
    sequence: int = -1


class Model:
    """A table under random or chosen commits.

    Attributes:
        table: the table.
        ids: the snapshots in order; `states` are their visible rows, counted.
    """

    def __init__(self, lake, folder: Path, *, version: int, partitioned: bool, name="db.t"):
        self.table = lake.create_table(
            name, DDL, partition_by=["s"] if partitioned else [], format_version=version
        )
        if partitioned:
            # Every commit then rewrites the manifests of the one before.
            self.table.set_properties({"commit.manifest.min-count-to-merge": "2"})
        self.folder = folder
        folder.mkdir()
        self.version, self.partitioned = version, partitioned
        self.data: list[Data] = []
        self.deletes: list[Delete] = []
        self.ids: list[int] = []
        self.states: list[Counter] = []
        self.written = 0

    # -- files ----

    def _path(self, suffix="parquet"):
        self.written += 1
        return self.folder / f"{self.written:03}.{suffix}"

    def _partition(self, s):
        return (s,) if self.partitioned else ()

    def data_file(self, rows):
        """A data file; all rows are of one value of `s` where the table is partitioned."""
        path = self._path()
        columns = list(zip(*rows, strict=True))
        maps = [None if m is None else list(m.items()) for m in columns[3]]
        arrays = [pa.array(c, kind) for c, kind in zip(columns[:3], _ARROW.values(), strict=True)]
        table = pa.Table.from_arrays(
            [*arrays, pa.array(maps, SCHEMA.field("m").type)], schema=SCHEMA
        )
        pq.write_table(table, path)
        return Data(
            DataFile(
                file_path=f"file://{path}",
                record_count=len(rows),
                file_size_in_bytes=path.stat().st_size,
                partition=self._partition(rows[0][1]),
            ),
            list(rows),
        )

    def position_file(self, positions, partition, *, scoped):
        """A position delete file, about one data file alone where scoped."""
        path = self._path()
        ordered = sorted(positions)
        arrays = [[p for p, _ in ordered], [n for _, n in ordered]]
        pq.write_table(pa.table(arrays, schema=POSITIONS), path)
        return Delete(
            DataFile(
                content=Content.POSITION_DELETES,
                file_path=f"file://{path}",
                record_count=len(ordered),
                file_size_in_bytes=path.stat().st_size,
                partition=partition,
                referenced_data_file=ordered[0][0] if scoped else None,
            ),
            positions=set(ordered),
        )

    def vector(self, data, positions):
        """A deletion vector in a Puffin file of its own."""
        blob = deletion_vector_to_bytes(sorted(positions))
        puffin = PuffinBuilder()
        place = puffin.add_deletion_vector(
            blob, referenced_data_file=data.file.file_path, cardinality=len(positions)
        )
        path = self._path("puffin")
        path.write_bytes(puffin.to_bytes())
        return Delete(
            DataFile(
                content=Content.POSITION_DELETES,
                file_path=f"file://{path}",
                file_format="puffin",
                record_count=len(positions),
                file_size_in_bytes=path.stat().st_size,
                partition=data.file.partition,
                referenced_data_file=data.file.file_path,
                content_offset=place.offset,
                content_size_in_bytes=place.length,
            ),
            positions={(data.file.file_path, position) for position in positions},
        )

    def equality_file(self, columns, keys, partition):
        """An equality delete file of the columns at these places."""
        path = self._path()
        fields = [SCHEMA.field(COLUMNS[place]) for place in columns]
        ordered = list(keys)
        arrays = [pa.array([key[i] for key in ordered], each.type) for i, each in enumerate(fields)]
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path)
        return Delete(
            DataFile(
                content=Content.EQUALITY_DELETES,
                file_path=f"file://{path}",
                record_count=len(ordered),
                file_size_in_bytes=path.stat().st_size,
                partition=partition,
                equality_ids=tuple(place + 1 for place in columns),
            ),
            columns=tuple(columns),
            keys=set(keys),
        )

    # -- state ----

    def alive(self, data):
        """The positions of a data file that no delete takes."""
        about = [d for d in self.deletes if d.file.partition == data.file.partition]
        vectors = [
            d for d in about
            if d.file.is_deletion_vector and d.file.referenced_data_file == data.file.file_path
        ]  # fmt: skip
        own = vectors or [
            d for d in about if not d.columns and not d.file.is_deletion_vector
            and d.sequence >= data.sequence
        ]  # fmt: skip
        equality = [d for d in about if d.columns and d.sequence > data.sequence]
        return [
            position
            for position, row in enumerate(data.rows)
            if not any((data.file.file_path, position) in d.positions for d in own)
            and not any(tuple(row[c] for c in d.columns) in d.keys for d in equality)
        ]

    def rows(self, data):
        """The rows of a data file that are visible."""
        return [data.rows[position] for position in self.alive(data)]

    def _committed(self, added=(), removed=()):
        sequence = self.table.current_snapshot.sequence_number
        gone = {id(each) for each in removed}
        self.data = [each for each in self.data if id(each) not in gone]
        self.deletes = [each for each in self.deletes if id(each) not in gone]
        for each in added:
            each.sequence = sequence if each.sequence < 0 else each.sequence
            (self.data if isinstance(each, Data) else self.deletes).append(each)
        self.ids.append(self.table.current_snapshot.snapshot_id)
        self.states.append(Counter(shown(row) for data in self.data for row in self.rows(data)))

    # -- commits ----

    def append(self, *files):
        """Add data files."""
        self.table.files.append([each.file for each in files])
        self._committed(files)

    def overwrite(self, added, removed):
        """Replace data files."""
        self.table.files.overwrite(
            [each.file for each in added], removed_paths=[each.file.file_path for each in removed]
        )
        self._committed(added, removed)

    def delta(self, added=(), removed=()):
        """A merge-on-read commit of data and delete files."""
        self.table.files.row_delta(
            added=[each.file for each in added if isinstance(each, Data)],
            added_deletes=[each.file for each in added if isinstance(each, Delete)],
            removed_deletes=[each.file for each in removed if isinstance(each, Delete)],
        )
        self._committed(added, removed)

    def rewrite(self, removed):
        """Compact data files of one partition into one; the rows stay."""
        rows = [row for each in removed for row in self.rows(each)]
        added = [self.data_file(rows)] if rows else []
        vectors = [self.vector_of(each) for each in removed if self.vector_of(each)]
        self.table.files.rewrite(
            removed=[each.file for each in removed],
            added=[each.file for each in added],
            removed_deletes=[each.file for each in vectors],
            from_snapshot=self.table.metadata.current_snapshot_id,
        )
        self._committed(added, [*removed, *vectors])

    def vector_of(self, data):
        """The live deletion vector of a data file, or None."""
        return next(
            (
                d for d in self.deletes
                if d.file.is_deletion_vector and d.file.referenced_data_file == data.file.file_path
            ),
            None,
        )  # fmt: skip

    # -- what is right ----

    def difference(self, start: int, end: int):
        """Rows by ("INSERT" or "DELETE", row) that lead from one state to another; -1 is empty."""
        before = self.states[start] if start >= 0 else Counter()
        after = self.states[end]
        return Counter(
            {
                **{("INSERT", row): n for row, n in (after - before).items()},
                **{("DELETE", row): n for row, n in (before - after).items()},
            }
        )

    def changelog(self, start: int, end: int):
        """(type, row, ordinal, snapshot id) of every change after one place up to another."""
        found: Counter = Counter()
        for ordinal, place in enumerate(range(start + 1, end + 1)):
            for (kind, row), count in self.difference(place - 1, place).items():
                found[kind, row, ordinal, self.ids[place]] += count
        return found

    def net(self, start: int, end: int):
        """The changes that no later one undid: each is undone by the next opposite one."""
        open_changes: dict[tuple, list] = {}
        for ordinal, place in enumerate(range(start + 1, end + 1)):
            for (kind, row), count in self.difference(place - 1, place).items():
                stack = open_changes.setdefault(row, [])
                for _ in range(count):
                    if stack and stack[-1][0] != kind:
                        stack.pop()
                    else:
                        stack.append((kind, row, ordinal, self.ids[place]))
        return Counter(change for stack in open_changes.values() for change in stack)


def collected(changes):
    """A changelog DataFrame as `Model.changelog` tells it."""
    return Counter(
        (row["_change_type"], shown(row[:4]), row["_change_ordinal"], row["_commit_snapshot_id"])
        for row in changes.collect()
    )
