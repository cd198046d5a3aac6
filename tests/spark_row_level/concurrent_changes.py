"""The table that two writers change at once.

It has three files: `a1` (ids 1 to 4) and `a2` (ids 5 to 8) of partition a, `b` (ids 11 to 14) of
partition b.
"""

from __future__ import annotations

from collections import Counter

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
