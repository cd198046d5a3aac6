"""Commands of two writers by name, each about one row, and what they leave of a plain list."""

from concurrent_changes import frame, partition_of

from maintenance.independent_walk import local, reached

COMMANDS = {
    "delete": lambda lake, t, row, **o: t.delete(f"id = {row}", **o),
    "update": lambda lake, t, row, **o: t.update({"v": "concat(v, '+')"}, f"id = {row}", **o),
    "merge": lambda lake, t, row, **o: t.upsert(
        frame(lake, [(row, partition_of(row), "new")]), keys="id", **o
    ),
}


def in_mode(mode):
    """The three commands in a mode of their own, on a table of another one."""

    def named(name):
        def run(lake, table, row, **options):
            command = f"write.{name}.mode"
            before = table.properties[command]
            # The property alone: no snapshot comes of it.
            table.set_properties({command: mode})
            try:
                COMMANDS[name](lake, table, row, **options)
            finally:
                table.set_properties({command: before})

        return run

    return {name: named(name) for name in COMMANDS}


def by_equality(lake, table, row):
    """The row gets a new form, and its key goes to an equality delete file."""
    rows = frame(lake, [(row, partition_of(row), "new")])
    table.apply_changes(rows, keys=["id"], mode="equality-deletes")


def converted(lake, table, row):
    by_equality(lake, table, row)
    table.refresh().convert_equality_deletes()


_MARKED, _COPIED = in_mode("merge-on-read"), in_mode("copy-on-write")
RIVALS = {
    **_MARKED,
    **{f"copied {name}": run for name, run in _COPIED.items()},
    "by equality": by_equality,
    "by equality, converted": converted,
    "compaction": lambda lake, t, row: t.compact(rewrite_all=True),
    "sort": lambda lake, t, row: t.compact(rewrite_all=True, strategy="sort", sort_order="id desc"),
}


def after(command, rows, row):
    """The rows after a command about one of them."""
    if command in ("compaction", "sort"):
        return rows
    if command.endswith("delete"):
        return [each for each in rows if each[0] != row]
    replaced = command.endswith("merge") or command.startswith("by equality")
    return [(n, p, v if n != row else "new" if replaced else f"{v}+") for n, p, v in rows]


def row_ids(table):
    """The row ids by the column `id`, of the table as it is."""
    rows = table.scan(columns=["id", "_row_id"]).to_df().collect()
    return {each.id: each._row_id for each in rows}


def rows_moved(table):
    """How many rows the newest snapshot says to have moved."""
    summary = table.refresh().current_snapshot.summary
    return int(summary.get("frazil.row-level-conflicts.moved-rows", 0))


def unnamed_files(table):
    """Data and delete files that no snapshot of the table names."""
    named = {path.name for path in reached(table.metadata_location)}
    data = local(table.location) / "data"
    return {path.name for path in data.rglob("*.*") if not path.name.startswith(".")} - named
