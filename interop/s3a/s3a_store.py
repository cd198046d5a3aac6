"""The bucket that the cases use: its address, what lies in it, files put there from outside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from history_files import FileMaker
from history_oracle import Data, Delete

BUCKET = "lake"
WAREHOUSE = f"s3://{BUCKET}/warehouse"
ENDPOINT, SECRET = os.environ.get("S3A_ENDPOINT", ""), os.environ.get("S3A_SECRET", "")
STORE = {
    "s3.endpoint": ENDPOINT,
    "s3.access-key-id": "AKIAMADEUPFORTESTS",
    "s3.secret-access-key": SECRET,
    "s3.region": "us-east-1",
}
Rows = list[tuple[Any, ...]]


def keys(client: Any, prefix: str = "", bucket: str = BUCKET) -> list[str]:
    """Every key of a bucket below a prefix, folder markers too."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [item["Key"] for page in pages for item in page.get("Contents", ())]


def below(client: Any, table: Any) -> list[str]:
    """Every key of a table."""
    return keys(client, table.location.removeprefix(f"s3://{BUCKET}/") + "/")


def rows_of(df: Any) -> Rows:
    """A DataFrame's rows in an order of their own."""
    return sorted((tuple(row) for row in df.collect()), key=repr)


def read(table: Any, where: str | None = None, **scan: Any) -> Rows:
    """The rows of a table as it is now."""
    return rows_of(table.refresh().scan(where=where, **scan).to_df())


def ordered(rows: Sequence[tuple[Any, ...]]) -> Rows:
    """Expected rows in the order of `rows_of`."""
    return sorted(rows, key=repr)


class Deletes:
    """Made delete files, put into a table's folder on S3."""

    def __init__(self, client: Any, table: Any, folder: Path) -> None:
        self._client, self._table, self._maker = client, table, FileMaker(folder)
        self.place: tuple[int, tuple[Any, ...]] = (0, ())

    def data(self) -> list[Data]:
        """The table's data files."""
        files = self._table.refresh().inspect.dataframes.data_files().collect()
        return [Data(None, file["file_path"], self.place, []) for file in files]

    def positions(self, chosen: dict[str, list[int]]) -> Any:
        """A position delete file."""
        return self._put(
            self._maker.positions(chosen, Data(None, next(iter(chosen)), self.place, []))
        )

    def vector(self, path: str, places: list[int]) -> Any:
        """A deletion vector."""
        return self._put(self._maker.vector(places, Data(None, path, self.place, [])))

    def keys(self, values: list[int]) -> Any:
        """An equality delete file of the first column, an int."""
        way = ({"id": 1, "name": "id", "type": "int"},)
        made = self._maker.keys(
            [way], [(value,) for value in values], self.place, is_global=True, stats=True
        )
        return self._put(made)

    def _put(self, made: Delete) -> Any:
        local = made.file.file_path.removeprefix("file://")
        target = f"{self._table.location}/data/deletes/{Path(local).name}"
        key = target.removeprefix(f"s3://{BUCKET}/")
        self._client.put_object(Bucket=BUCKET, Key=key, Body=Path(local).read_bytes())
        return replace(made.file, file_path=target)
