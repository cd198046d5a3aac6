"""A table as plain Python rows, with deletes applied by the specification's rules 176 to 178.

A row maps field ids to values, nested ones included. Nothing of Frazil is used here: schemas and
partition specs are the JSON of the table's metadata file.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Row = dict[int, Any]
Field = Mapping[str, Any]
State = Counter[str]


# -- values ----------------------------------------------------------------------------------------


def shown(kind: Any, value: Any) -> Any:
    """A value such that NaN equals NaN and -0.0 differs from 0.0, as text where that is needed.

    Takes Python values and those of Spark's JSON alike.
    """
    if value is None:
        return None
    if isinstance(kind, Mapping):
        return {part["name"]: shown(part["type"], value[part["name"]]) for part in kind["fields"]}
    if kind in ("float", "double"):
        return "NaN" if math.isnan(float(value)) else repr(float(value))
    if kind.startswith("decimal"):
        return str(Decimal(value).normalize())
    return value if isinstance(value, int | str) else value.isoformat()


def initial(part: Field) -> Any:
    """What rows that were written before a column was added have in it."""
    return part.get("initial-default")


def in_schema(fields: Sequence[Field], row: Row) -> dict[str, Any]:
    """A row by the names of a schema."""
    return {part["name"]: _projected(part, row) for part in fields}


def _projected(part: Field, row: Row) -> Any:
    value = row[part["id"]] if part["id"] in row else initial(part)
    if value is None or not isinstance(part["type"], Mapping):
        return value
    return in_schema(part["type"]["fields"], value)


def leaves(fields: Sequence[Field]) -> Iterator[tuple[Field, ...]]:
    """The way to every field that has no fields of its own, from its top-level column."""
    for part in fields:
        if isinstance(part["type"], Mapping):
            yield from ((part, *below) for below in leaves(part["type"]["fields"]))
        else:
            yield (part,)


def value_at(way: Sequence[Field], row: Row) -> Any:
    """The value of a leaf; NULL where a struct above it is."""
    for part in way[:-1]:
        row = row.get(part["id"])
        if row is None:
            return None
    return row[way[-1]["id"]] if way[-1]["id"] in row else initial(way[-1])


# -- files -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Data:
    """A data file.

    Attributes:
        file: the entry to commit.
        place: its partition spec's id and its partition value.
    """

    file: Any
    path: str
    place: tuple[int, tuple[Any, ...]]
    rows: list[Row]
    sequence: int = -1


@dataclass(eq=False)
class Delete:
    """A delete file: positions, or keys of some leaves.

    Attributes:
        is_global: whether it is of an unpartitioned spec and so about every partition.
        vector_of: the path of the data file that a deletion vector is of.
    """

    file: Any
    place: tuple[int, tuple[Any, ...]]
    is_global: bool
    positions: frozenset[tuple[str, int]] = frozenset()
    vector_of: str | None = None
    ways: tuple[tuple[Field, ...], ...] = ()
    keys: frozenset[tuple[Any, ...]] = frozenset()
    sequence: int = -1


@dataclass(frozen=True)
class Snapshot:
    """What the table held at a commit.

    Attributes:
        fields: its schema.
        rows: as they were written, whatever the schema was then.
    """

    snapshot_id: int
    fields: tuple[Field, ...]
    rows: tuple[Row, ...]

    def state(self, fields: Sequence[Field] | None = None) -> State:
        """The rows as a multiset of texts, by the names of its own schema or another."""
        chosen = fields or self.fields
        return counted((in_schema(chosen, row) for row in self.rows), chosen)


def counted(rows: Iterable[Mapping[str, Any]], fields: Sequence[Field]) -> State:
    """Rows by name as a multiset of texts."""
    kind = {"fields": fields}
    return Counter(str(shown(kind, row)) for row in rows)


@dataclass
class Oracle:
    """The table's live files and what every snapshot held."""

    data: list[Data] = field(default_factory=list)
    deletes: list[Delete] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    sequence: int = 0

    def vector_of(self, data: Data) -> Delete | None:
        """The live deletion vector of a data file."""
        return next((each for each in self.deletes if each.vector_of == data.path), None)

    def deletes_in_use(self) -> list[Delete]:
        """The delete files that no commit may have dropped as dangling (rule 219)."""
        paths = {each.path for each in self.data}
        oldest = min((each.sequence for each in self.data), default=self.sequence + 1)
        return [
            each
            for each in self.deletes
            if (
                each.file.referenced_data_file in paths
                if each.file.referenced_data_file
                else each.sequence >= oldest
            )
        ]

    def rows_of(self, data: Data) -> list[Row]:
        """The rows of a data file that no delete takes."""
        vector = self.vector_of(data)
        by_position = [vector] if vector else [
            each for each in self.deletes
            if each.positions and each.vector_of is None and each.place == data.place
            and each.sequence >= data.sequence
        ]  # fmt: skip
        by_key = [
            each for each in self.deletes
            if each.ways and each.sequence > data.sequence
            and (each.is_global or each.place == data.place)
        ]  # fmt: skip
        gone = {
            place for each in by_position for path, place in each.positions if path == data.path
        }
        return [
            row
            for place, row in enumerate(data.rows)
            if place not in gone
            and not any(
                tuple(value_at(way, row) for way in each.ways) in each.keys for each in by_key
            )
        ]

    def committed(
        self,
        snapshot_id: int,
        fields: Sequence[Field],
        *,
        added: Iterable[Data | Delete] = (),
        removed: Iterable[Data | Delete] = (),
        data_sequence: int | None = None,
    ) -> None:
        """One more snapshot."""
        self.sequence += 1
        gone = {id(each) for each in removed}
        self.data = [each for each in self.data if id(each) not in gone]
        self.deletes = [each for each in self.deletes if id(each) not in gone]
        for each in added:
            each.sequence = self.sequence
            if isinstance(each, Data):
                each.sequence = self.sequence if data_sequence is None else data_sequence
                self.data.append(each)
            else:
                self.deletes.append(each)
        rows = tuple(row for data in self.data for row in self.rows_of(data))
        self.snapshots.append(Snapshot(snapshot_id, tuple(fields), rows))
