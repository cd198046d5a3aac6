"""Statements whose last row raises `boom`, when other rows of theirs are written."""

LAST = "if(id = 999, raise_error('boom'), 'new')"
ROWS = f"SELECT id, {LAST} AS n FROM range(0, 1000, 1, 4)"
BEFORE = [
    "CREATE TABLE {db}.t (id BIGINT, n STRING)",
    "INSERT INTO {db}.t SELECT id, 'old' AS n FROM range(0, 1000, 1, 4)",
    "CREATE TABLE {db}.m (id BIGINT, n STRING) TBLPROPERTIES ('write.delete.mode' = "
    "'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read')",
    "INSERT INTO {db}.m SELECT id, 'old' AS n FROM range(0, 1000, 1, 4)",
]
"""They make what the others are about."""
CHANGES = {
    "update": f"UPDATE {{db}}.{{t}} SET n = {LAST}",
    "delete": "DELETE FROM {db}.{t} WHERE id % 2 = 0 OR "
    "if(id = 999, CAST(raise_error('boom') AS BOOLEAN), false)",
    "merge": f"MERGE INTO {{db}}.{{t}} t USING ({ROWS}) s ON t.id = s.id + 500 "
    "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT *",
}
FAILING = {
    "insert": f"INSERT INTO {{db}}.t {ROWS}",
    "overwrite": f"INSERT OVERWRITE {{db}}.t {ROWS}",
    "replace where": f"INSERT INTO {{db}}.t REPLACE WHERE id > 5 {ROWS}",
    "create": f"CREATE TABLE {{db}}.made AS {ROWS}",
    "create or replace": f"CREATE OR REPLACE TABLE {{db}}.t AS {ROWS}",
    "create or replace, new": f"CREATE OR REPLACE TABLE {{db}}.made AS {ROWS}",
    "replace": f"REPLACE TABLE {{db}}.t AS {ROWS}",
    **{name: text.replace("{t}", "t") for name, text in CHANGES.items()},
    **{f"{name}, on read": text.replace("{t}", "m") for name, text in CHANGES.items()},
}


def files_below(folder):
    """The files and folders below a folder, each file with its size; not the catalog's database."""
    return {
        str(path.relative_to(folder)): path.stat().st_size if path.is_file() else None
        for path in folder.rglob("*")
        if ".db" not in path.suffix
    }
