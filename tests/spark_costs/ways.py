"""What a figure of `costs` chooses between: the same work done either way, and what comes of it.

A scenario makes its tables and says what is done with them; the figures are set around that alone.
Tests run scenarios small and look at the rows; `bench/ways.py` runs them large and takes the time.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from frazil.format.manifests import Content, DataFile
from frazil.format.types import LongType
from frazil.format.values import to_bytes
from frazil.spark.session import costs

MOST = 2_000_000_000
"""More than any test has of anything."""

NO_WAITS = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "2"}
Figures = Mapping[str, Any]
"""Values by the names of figures, or of other constants by their whole path."""


@dataclass(frozen=True)
class Place:
    """Where scenarios work.

    Attributes:
        lake: with the namespace `db`.
        folder: for files beside the lake.
    """

    lake: Any
    folder: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _made: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def spark(self) -> Any:
        """The session."""
        return self.lake.spark

    def table(self, ddl: str, *, version: int = 2, **more: Any) -> Any:
        """A new table without rows."""
        properties = {**NO_WAITS, **more.pop("properties", {})}
        return self.lake.create_table(
            f"db.t{next(self._numbers)}", ddl, format_version=version, properties=properties, **more
        )

    def new_folder(self) -> Path:
        """An empty folder."""
        made = self.folder / f"f{next(self._numbers)}"
        made.mkdir(parents=True)
        return made

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A table that is made once of its kind, since no scenario changes it.

        The lake's caches are emptied: the next read begins as the first one did.
        """
        if key not in self._made:
            self._made[key] = make()
        table = self._made[key]
        table.io.caches.clear()
        return table


@dataclass(frozen=True)
class Work:
    """What is done either way.

    Attributes:
        run: does it; it returns a DataFrame where what is done is a read of its rows.
        told: makes of what `run` returned what can be compared.
        expected: what that must be, by what the scenario put into its tables.
    """

    run: Callable[[], Any]
    told: Callable[[Any], Any]
    expected: Callable[[], Any]


Sized = Callable[[int], Mapping[str, Any]]
"""The arguments of a scenario that has so many of what a figure counts."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Figures that choose between the same two ways: one goes up to as many as all of them say.

    Attributes:
        figures: by name; each with how large its scenario is for so many, where a bench has it.
        scenario: takes a place and its own arguments.
        sign: a function, by its path, that one of the ways alone calls; or what tells the ways
            apart by what was returned; None where nothing cheap does.
        calls: at which end of the figures that function is called.
        low: takes the way beyond the figure.
        high: takes the way up to it.
        beside: other figures that leave the choice to these.
        arguments: of the scenario.
    """

    figures: Mapping[str, Sized | None]
    scenario: Callable[..., Work]
    sign: str | Callable[[Any], Any] | None
    calls: str = "low"
    low: int = 0
    high: int = MOST
    beside: Figures = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(self.figures)

    @property
    def up_to(self) -> Figures:
        """The figures that take the way up to them."""
        return {**self.beside, **dict.fromkeys(self.figures, self.high)}

    def beyond(self, name: str) -> Figures:
        """The figures that take the way beyond one of them."""
        return {**self.up_to, name: self.low}

    def is_called(self, figures: Figures) -> bool:
        """Whether the function of the sign is called where the figures are these."""
        return (figures == self.up_to) == (self.calls == "high")


def count(argument: str, **others: int) -> Sized:
    """So many of an argument as the figure says, and of others so many times as many."""
    return lambda figure: {argument: figure, **{k: figure * v for k, v in others.items()}}


def set_figures(figures: Figures, put: Callable[[Any, str, Any], None]) -> None:
    """Set figures and other constants by a function of a module, a name and a value.

    A whole number is how much of a `Cost` is done beside the session.
    """
    for name, value in figures.items():
        owner, _, short = name.rpartition(".")
        module = resolve_name(owner) if owner else costs
        kept = getattr(module, short)
        is_part = isinstance(kept, costs.Cost) and isinstance(value, int)
        put(module, short, replace(kept, here=value) if is_part else value)


def rows_of(df: Any) -> list[tuple[Any, ...]]:
    """The rows, sorted."""
    return sorted((tuple(row) for row in df.collect()), key=repr)


def rows_in(table: Any) -> list[tuple[Any, ...]]:
    """The rows that another handle reads, which knows nothing of what was done."""
    table.io.caches.clear()
    return rows_of(table.refresh().scan().to_df())


def name_of(table: Any) -> str:
    """A table's name in a statement."""
    return ".".join(table.identifier)


def in_order(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Expected rows as `rows_of` gives them."""
    return sorted(rows, key=repr)


def equality_delete(table: Any, column: str, keys: pa.Array) -> DataFile:
    """Write an equality delete file of one column, none of whose keys is NULL."""
    number = table.schema.find_field(column).field_id
    described = pa.field(column, keys.type, True, {"PARQUET:field_id": str(number)})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays([keys], schema=pa.schema([described])), sink)
    data = sink.getvalue().to_pybytes()
    path = f"{table.location}/data/equality-{uuid.uuid4()}.parquet"
    table.io.write(path, data)
    return DataFile(
        content=Content.EQUALITY_DELETES,
        file_path=path,
        record_count=len(keys),
        file_size_in_bytes=len(data),
        equality_ids=(number,),
        value_counts={number: len(keys)},
        null_value_counts={number: 0},
    )


def every_third(keys: int, parts: int, kind: str) -> list[pa.Array]:
    """The keys 0, 3, 6 … in so many parts, as whole numbers or as texts."""
    chosen = np.array_split(np.arange(keys, dtype=np.int64) * 3, parts)
    if kind == "bigint":
        return [pa.array(part) for part in chosen]
    return [pa.array([f"n{number}" for number in part]) for part in chosen]


def entries_of(table: Any, commit: int, files: int) -> list[DataFile]:
    """What a commit says of so many files, which are not there.

    The table has the columns ``id`` and ``p``, its partition: each file has one, and ten rows.
    """
    entries = []
    for number in range(commit * files, (commit + 1) * files):
        ends = (to_bytes(LongType(), 10 * number), to_bytes(LongType(), 10 * number + 9))
        entries.append(
            DataFile(
                file_path=f"{table.location}/data/p={number}/{number}.parquet",
                partition=(number,),
                record_count=10,
                file_size_in_bytes=1_000,
                lower_bounds={1: ends[0]},
                upper_bounds={1: ends[1]},
            )
        )
    return entries


def folder_of(table: Any) -> Path:
    """A table's folder of data on this disk."""
    return Path("/" + table.location.removeprefix("file:").lstrip("/")) / "data"


def data_files_below(table: Any) -> list[Path]:
    """The Parquet files that lie in a table's folder of data."""
    found = folder_of(table).rglob("*.parquet")
    return sorted(path for path in found if not path.name.startswith("."))


def make_old(path: Path, seconds: int = 10 * 24 * 3600) -> None:
    """Let a file look as if it had been there for days."""
    moment = path.stat().st_mtime - seconds
    os.utime(path, (moment, moment))
