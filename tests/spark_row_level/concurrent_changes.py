"""Two writers of one table: what each does, which pairs conflict, and the rows afterwards.

The table has three files: `a1` (ids 1 to 4) and `a2` (ids 5 to 8) of partition a, `b` (ids 11 to
14) of partition b. The first writer is about the row 1; before its commit the rival commits a
change of the row that a place names.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from frazil.format.manifests import DataFile
from frazil.spark.write.files import write_data_files

DDL = "id bigint not null, p string, v string"
STORAGE = (("copy-on-write", 2), ("merge-on-read", 2), ("merge-on-read", 3))
FILES = {1: [1, 2, 3, 4], 5: [5, 6, 7, 8], 11: [11, 12, 13, 14]}


def partition_of(row_id):
    return "a" if row_id < 11 else "b"


def first_rows():
    return [(n, partition_of(n), "old") for ids in FILES.values() for n in ids]


def make_table(lake, mode, version, *, name="db.t", **properties):
    """The table, a file for each list of ids."""
    table = lake.create_table(
        name,
        DDL,
        partition_by=["p"],
        format_version=version,
        properties={
            **{f"write.{command}.mode": mode for command in ("delete", "update", "merge")},
            **properties,
        },
    )
    for ids in FILES.values():
        table.append(frame(lake, [(n, partition_of(n), "old") for n in ids]))
    return table


class KeptTables:
    """Tables that many tests share, one for each way of writing."""

    MOST_USES = 40
    """A table's history grows with each: another one takes over."""

    def __init__(self, lake):
        self.lake = lake
        self._made = {}
        self._uses = Counter()

    def fresh(self, mode, version):
        """A handle of the table of this kind, taken back to its first rows."""
        number, _ = divmod(self._uses[mode, version], self.MOST_USES)
        self._uses[mode, version] += 1
        name = f"db.{mode.replace('-', '_')}_{version}_{number}"
        if name not in self._made:
            made = make_table(self.lake, mode, version, name=name)
            self._made[name] = made.current_snapshot.snapshot_id
        table = self.lake.load_table(name)
        if table.current_snapshot.snapshot_id != self._made[name]:
            table.rollback_to_snapshot(self._made[name])
        return table


def frame(lake, rows):
    return lake.spark.createDataFrame(list(rows), DDL).coalesce(1)


def shown(table):
    return sorted(tuple(row) for row in table.to_df().collect())


@dataclass(frozen=True)
class Change:
    """One change of the row `row_id`, by the writer of that name."""

    kind: str
    row_id: int
    writer: str

    @property
    def row(self):
        """The row that the writer leaves, if it leaves one."""
        return (self.row_id, partition_of(self.row_id), self.writer)

    def run(self, lake, table, isolation):
        """Do it."""
        getattr(self, self.kind)(lake, table, isolation)

    def delete(self, lake, table, isolation):
        table.delete(f"id = {self.row_id}", isolation=isolation)

    def update(self, lake, table, isolation):
        table.update({"v": f"'{self.writer}'"}, f"id = {self.row_id}", isolation=isolation)

    def merge(self, lake, table, isolation):
        source = frame(lake, [self.row])
        merge = table.merge(source, on="target.id = source.id", isolation=isolation)
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def rewrite(self, lake, table, isolation):
        """Write the file of the row anew, as compaction does."""
        planned = table.scan(where=f"id = {self.row_id}").plan().files
        path, records, size = planned.select("file_path", "record_count", "file_size_in_bytes").row(
            0
        )
        old = DataFile(
            file_path=path,
            partition=(partition_of(self.row_id),),
            record_count=records,
            file_size_in_bytes=size,
        )
        ids = FILES[max(n for n in FILES if n <= self.row_id)]
        listed = ", ".join(map(str, ids))
        rows = table.scan(where=f"id in ({listed})").to_df()
        added = write_data_files(lake.spark, rows, metadata=table.metadata, io=table.io)
        table.files.rewrite(
            removed=[old], added=added, from_snapshot=table.current_snapshot.snapshot_id
        )
