"""ClickHouse and Daft, run by their own Python: a line of JSON is a question, a line the answer.

`interop_clients.Program` talks to it; it knows nothing of Frazil.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Ask = Callable[[dict[str, Any]], Any]


def clickhouse(uri: str, token: str) -> Ask:
    """SQL as it is; what the server has is the database `lake`."""
    from chdb import session

    # Tables on a local disk have no keys; the engine wants to be told the files' format instead.
    made = session.Session()
    for text in (
        "SET allow_database_iceberg = 1, allow_experimental_database_iceberg = 1, "
        "allow_insert_into_iceberg = 1, write_full_path_in_iceberg_metadata = 1",
        f"CREATE DATABASE lake ENGINE = DataLakeCatalog('{uri}/v1', 'Parquet') "
        "SETTINGS catalog_type = 'rest', warehouse = 'lake', "
        f"auth_header = 'Authorization: Bearer {token}'",
    ):
        made.query(text)

    def ask(question: dict[str, Any]) -> Any:
        answered = str(made.query(question["sql"], "JSONCompactEachRow"))
        return [json.loads(line) for line in answered.splitlines() if line]

    return ask


def daft(uri: str, token: str) -> Ask:
    """A table's rows by id, or rows appended to it."""
    import daft
    from pyiceberg.catalog.rest import RestCatalog

    catalog = RestCatalog("lake", uri=uri, token=token)

    def ask(question: dict[str, Any]) -> Any:
        table = catalog.load_table(question["table"])
        if "append" in question:
            daft.from_pydict(question["append"]).write_iceberg(table, mode="append")
            return []
        frame = daft.read_iceberg(table)
        if "where" in question:
            frame = frame.where(daft.sql_expr(question["where"]))
        rows = frame.select(*question["columns"]).sort("id").to_pylist()
        return [list(row.values()) for row in rows]

    return ask


def main() -> None:
    """Answer until there are no more questions."""
    # What the engines print is not an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kind, uri = sys.argv[1:]
    ask = {"clickhouse": clickhouse, "daft": daft}[kind](uri, os.environ["ENGINE_TOKEN"])
    for line in sys.stdin:
        try:
            answer = {"rows": ask(json.loads(line))}
        except Exception as failure:
            answer = {"error": f"{type(failure).__name__}: {failure}"}
        print(json.dumps(answer, default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
