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
PLACES = {"same row": 1, "same file": 2, "same partition": 5, "other partition": 11}
CHANGES = ("append", "delete", "update", "merge", "overwrite", "rewrite")
STORAGE = (("copy-on-write", 2), ("merge-on-read", 2), ("merge-on-read", 3))
ISOLATION = ("serializable", "snapshot")
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

    def append(self, lake, table, isolation):
        table.append(frame(lake, [self.row]))

    def delete(self, lake, table, isolation):
        table.delete(f"id = {self.row_id}", isolation=isolation)

    def update(self, lake, table, isolation):
        table.update({"v": f"'{self.writer}'"}, f"id = {self.row_id}", isolation=isolation)

    def merge(self, lake, table, isolation):
        source = frame(lake, [self.row])
        merge = table.merge(source, on="target.id = source.id", isolation=isolation)
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def overwrite(self, lake, table, isolation):
        where = f"p = '{partition_of(self.row_id)}' and id = {self.row_id}"
        table.overwrite(frame(lake, [self.row]), where=where, isolation=isolation)

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

    def on(self, rows):
        """The rows of a plain list after the change."""
        others = [row for row in rows if row[0] != self.row_id]
        match self.kind:
            case "append":
                return [*rows, self.row]
            case "delete":
                return others
            case "update":
                return [self.row if row[0] == self.row_id else row for row in rows]
            case "merge" | "overwrite":
                return [*others, self.row]
        return rows


def conflicts(first, rival, place, isolation, mode):
    """Whether the first writer must be refused, from what the specification and the docs say.

    An append fits every table. Nothing that happened to other files matters. Serializable isolation
    refuses added rows that the first writer's condition matches. A file that the first writer
    replaces must be as it was. Rows that both mark in a file as deleted are told apart.
    """
    if first == "append":
        return False
    if rival == "append":
        return first != "rewrite" and isolation == "serializable" and place == "same row"
    if place not in ("same row", "same file"):
        # An overwrite judges the deletes of others by their partition alone.
        by_partition = rival in ("delete", "update", "merge") and mode == "merge-on-read"
        return first == "overwrite" and by_partition and place == "same partition"
    marked = ("delete", "update", "merge")
    if mode == "merge-on-read" and first in marked and rival in marked:
        # Each marks rows where they are: only the same row is a conflict.
        if place == "same file" or (first == "delete" and isolation == "snapshot"):
            return False
        return first != "delete" or rival != "delete"
    if first != "delete" or (mode == "copy-on-write" and isolation == "serializable"):
        return True
    # Under snapshot isolation it is made again on the new snapshot. Under serializable, positions
    # are marked in files that must be there.
    return isolation != "snapshot"


def rows_after(first, rival, place, isolation, *, refused):
    """The rows, computed on plain lists."""
    read = first_rows()
    own, other = Change(first, 1, "first"), Change(rival, PLACES[place], "rival")
    after_rival = other.on(read)
    if refused:
        return sorted(after_rival)
    if rival == "append":
        # The first writer saw none of the rival's row.
        return sorted([*own.on(read), other.row])
    return sorted(own.on(after_rival))
