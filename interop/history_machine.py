"""Random histories of one table as a state machine of hypothesis.

Every rule is a commit, made by Frazil with files that are written here, and told to the oracle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from history_files import FileMaker, partition_of
from history_oracle import Data, Delete, Field, Oracle, Row, leaves, value_at
from history_questions import Asked, questions
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from frazil.format.types import IntegerType, NestedField, StringType, StructType

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.sampled_from([0, 1, 2, -5]),
    "long": st.sampled_from([0, 1, 2, 2**40]),
    "float": st.sampled_from([0.0, -0.0, 0.5, float("nan")]),
    "double": st.sampled_from([0.0, -0.0, 1e300, float("nan")]),
    "date": st.sampled_from([date(1969, 12, 31), date(2024, 2, 29)]),
    "string": st.sampled_from(["", "p", "q"]),
    "decimal(9, 2)": st.sampled_from([Decimal("0.00"), Decimal("-1.50")]),
    "decimal(18, 2)": st.sampled_from(
        [Decimal("0.00"), Decimal("-1.50"), Decimal("12345678901.25")]
    ),
}
PROMOTED = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(18, 2)"}
DEFAULTS = {"int": 7, "long": 2**41, "string": "new", "boolean": True}
TRANSFORMS = {
    "boolean": ("{}",),
    "int": ("{}", "bucket(2, {})", "truncate(2, {})"),
    "long": ("{}", "bucket(2, {})", "truncate(2, {})"),
    "string": ("{}", "bucket(2, {})", "truncate(1, {})"),
    "date": ("{}", "bucket(2, {})", "year({})", "month({})", "day({})"),
    "decimal(9, 2)": ("{}", "bucket(2, {})", "truncate(100, {})"),
    "decimal(18, 2)": ("{}", "bucket(2, {})", "truncate(100, {})"),
}
"""Partition fields of a column by its type."""
NAMES = ("a", "b", "c", "d", "e", "f", "g")
STRUCT = "struct<x: int, y: string>"
STRUCT_TYPE = StructType((NestedField(1, "x", IntegerType()), NestedField(2, "y", StringType())))
TYPES = (*VALUES, STRUCT)

types = st.sampled_from(TYPES)
versions = st.sampled_from([2, 3])


def value_of(kind: Any) -> st.SearchStrategy[Any]:
    """A value of a column, NULL among them."""
    if isinstance(kind, dict):
        inner = {part["id"]: value_of(part["type"]) for part in kind["fields"]}
        return st.none() | st.fixed_dictionaries(inner)
    return st.none() | VALUES[kind]


class History(RuleBasedStateMachine):
    """One table, its files and its oracle.

    Attributes:
        has_nested_keys: whether equality deletes compare fields of structs.
        open_table: makes the table from a DDL, a format version and properties.
        check: compares all that was written once the history ends.
        new_folder: makes an empty folder.
    """

    open_table: Callable[[str, int, dict[str, str]], Any]
    check: Callable[[History], None]
    new_folder: Callable[[], Path]

    # -- what the metadata says ----

    @property
    def _metadata(self) -> dict[str, Any]:
        text = Path(self.table.metadata_location.removeprefix("file://")).read_text()
        return json.loads(text)

    def _look(self) -> None:
        """Read the schema and the partition spec of now from the metadata file."""
        metadata = self._metadata
        by_id = {schema["schema-id"]: schema["fields"] for schema in metadata["schemas"]}
        self.fields: list[Field] = by_id[metadata["current-schema-id"]]
        self.specs = {spec["spec-id"]: spec for spec in metadata["partition-specs"]}
        self.spec = self.specs[metadata["default-spec-id"]]
        self.sources = {
            part["source-id"] for spec in self.specs.values() for part in spec["fields"]
        }

    def _committed(
        self, added: Sequence[Any] = (), removed: Sequence[Any] = (), **more: Any
    ) -> None:
        snapshot = self._metadata["current-snapshot-id"]
        self.oracle.committed(snapshot, self.fields, added=added, removed=removed, **more)

    # -- parts of commits ----

    def _rows(self, data: st.DataObject) -> list[Row]:
        row = st.fixed_dictionaries({part["id"]: value_of(part["type"]) for part in self.fields})
        return data.draw(st.lists(row, min_size=1, max_size=4), "rows")

    def _files(
        self, rows: Sequence[Row], stats: bool, spec: dict[str, Any] | None = None
    ) -> list[Data]:
        """Data files of rows, one a partition."""
        chosen = spec or self.spec
        by_place: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            by_place.setdefault(partition_of(chosen, self.fields, row), []).append(row)
        return [
            self.files.data(self.fields, (chosen["spec-id"], values), members, stats=stats)
            for values, members in by_place.items()
        ]

    def _some(self, data: st.DataObject, items: Sequence[Any], most: int) -> list[Any]:
        places = st.lists(
            st.integers(0, len(items) - 1), min_size=1, max_size=min(most, len(items)), unique=True
        )
        return [items[place] for place in data.draw(places, "which")]

    def _neighbours(self, data: st.DataObject, most: int) -> list[Data]:
        """Some live data files of one partition."""
        first = data.draw(st.integers(0, len(self.oracle.data) - 1), "first")
        place = self.oracle.data[first].place
        return self._some(data, [each for each in self.oracle.data if each.place == place], most)

    def _positions(self, data: st.DataObject, file: Data) -> set[int]:
        return data.draw(st.sets(st.integers(0, len(file.rows) - 1), min_size=1), "positions")

    def _keys(
        self,
        data: st.DataObject,
        rows: Sequence[Row],
        place: tuple[int, tuple[Any, ...]],
        *,
        is_global: bool,
    ) -> Delete:
        ways = [
            way
            for way in leaves(self.fields)
            if way[-1]["type"] not in ("float", "double")
            and (len(way) == 1 or self.has_nested_keys)
        ]
        chosen = self._some(data, ways, 2)
        keys = {tuple(value_at(way, row) for way in chosen) for row in self._some(data, rows, 2)}
        return self.files.keys(
            chosen, keys, place, is_global=is_global, stats=data.draw(st.booleans(), "stats")
        )

    def _has_data(self) -> bool:
        return bool(self.oracle.data)

    # -- commits of files ----

    @initialize(data=st.data(), version=versions, kinds=st.lists(types, min_size=1, max_size=3))
    def make(self, data: st.DataObject, version: int, kinds: list[str]) -> None:
        """An empty table and its first rows."""
        columns = ["id long", *(f"{name} {kind}" for name, kind in zip(NAMES, kinds, strict=False))]
        # Every commit then rewrites the manifests of the one before.
        merging = data.draw(st.booleans(), "merging")
        self.has_nested_keys = data.draw(st.sampled_from([False, False, True]), "nested keys")
        properties = {"commit.manifest.min-count-to-merge": "2"} if merging else {}
        self.version = version
        self.oracle, self.files = Oracle(), FileMaker(self.new_folder())
        self.asked: list[Asked] = []
        self.table = self.open_table(", ".join(columns), version, properties)
        self._look()
        if data.draw(st.booleans(), "partitioned"):
            self.partition(data)
        self.append(data)

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        """Rows."""
        added = self._files(self._rows(data), data.draw(st.booleans(), "stats"))
        self.table.files.append([each.file for each in added])
        self._committed(added)

    @precondition(_has_data)
    @rule(data=st.data())
    def delete_positions(self, data: st.DataObject) -> None:
        """Position delete files in version 2, deletion vectors in version 3."""
        chosen = self._neighbours(data, 2)
        positions = {each.path: self._positions(data, each) for each in chosen}
        added, removed = [], []
        if self.version == 2:
            added.append(self.files.positions(positions, chosen[0]))
        else:
            for each in chosen:
                old = self.oracle.vector_of(each)
                kept = {place for _, place in old.positions} if old else set()
                removed += [old] if old else []
                added.append(self.files.vector(positions[each.path] | kept, each))
        self.table.files.row_delta(
            added_deletes=[each.file for each in added],
            removed_deletes=[each.file for each in removed],
        )
        self._committed(added, removed)

    @precondition(_has_data)
    @rule(data=st.data(), count=st.integers(1, 2))
    def delete_keys(self, data: st.DataObject, count: int) -> None:
        """Equality deletes by one or two columns."""
        added = []
        for _ in range(count):
            (about,) = self._neighbours(data, 1)
            is_global = not self.specs[about.place[0]]["fields"]
            added.append(self._keys(data, about.rows, about.place, is_global=is_global))
        self.table.files.row_delta(added_deletes=[each.file for each in added])
        self._committed(added)

    @precondition(_has_data)
    @rule(data=st.data())
    def upsert(self, data: st.DataObject) -> None:
        """Rows and equality deletes, which do not reach them."""
        rows = self._files(self._rows(data), data.draw(st.booleans(), "stats"))
        place = rows[0].place
        deletes = self._keys(data, rows[0].rows, place, is_global=not self.spec["fields"])
        self.table.files.row_delta(added=[each.file for each in rows], added_deletes=[deletes.file])
        self._committed([*rows, deletes])

    @precondition(_has_data)
    @rule(data=st.data(), with_rows=st.booleans())
    def overwrite(self, data: st.DataObject, with_rows: bool) -> None:
        """Other rows in place of whole files."""
        removed = self._some(data, self.oracle.data, 2)
        added = self._files(self._rows(data), stats=True) if with_rows else []
        self.table.files.overwrite(
            [each.file for each in added], removed_paths=[each.path for each in removed]
        )
        self._committed(added, removed)

    @precondition(lambda self: bool(self.oracle.deletes_in_use()))
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        """A delete file is removed: its rows come back."""
        removed = self._some(data, self.oracle.deletes_in_use(), 1)
        self.table.files.row_delta(removed_deletes=[each.file for each in removed])
        self._committed((), removed)

    @precondition(_has_data)
    @rule(data=st.data(), keeps_number=st.booleans())
    def compact(self, data: st.DataObject, keeps_number: bool) -> None:
        """Files of one partition as one, in the schema and the partition spec of now."""
        removed = self._neighbours(data, 3)
        rows = [row for each in removed for row in self.oracle.rows_of(each)]
        number = self.oracle.sequence if keeps_number else None
        self._rewrite(removed, self._files(rows, stats=True), number)

    @precondition(_has_data)
    @rule(data=st.data())
    def compact_while_rows_are_deleted(self, data: st.DataObject) -> None:
        """Equality deletes arrive while files are rewritten, and reach the new ones."""
        removed = self._neighbours(data, 3)
        rows = [row for each in removed for row in self.oracle.rows_of(each)]
        place = removed[0].place
        spec = self.specs[place[0]]
        started = self.oracle.sequence
        self.delete_keys(data, 1)
        added = self._files(rows, stats=True, spec=spec)
        self._rewrite(removed, added, started, self.oracle.snapshots[-2].snapshot_id)

    def _rewrite(
        self,
        removed: list[Data],
        added: list[Data],
        number: int | None,
        from_snapshot: int | None = None,
    ) -> None:
        vectors = [vector for each in removed if (vector := self.oracle.vector_of(each))]
        self.table.files.rewrite(
            removed=[each.file for each in removed],
            added=[each.file for each in added],
            removed_deletes=[each.file for each in vectors],
            data_sequence_number=number,
            from_snapshot=self.oracle.snapshots[-1].snapshot_id
            if from_snapshot is None
            else from_snapshot,
        )
        self._committed(added, [*removed, *vectors], data_sequence=number)

    # -- evolution ----

    @rule(data=st.data(), kind=types)
    def add_column(self, data: st.DataObject, kind: str) -> None:
        """A column, with a default where the version has them; or a field of a struct."""
        parent, fields = self._parent(data)
        free = [name for name in NAMES if name not in {part["name"] for part in fields}]
        if not free or (parent and kind == STRUCT):
            return
        name = parent + data.draw(st.sampled_from(free), "name")
        has_default = self.version == 3 and kind in DEFAULTS and data.draw(st.booleans(), "default")
        with self.table.update_schema() as update:
            if has_default:
                update.add_column(name, kind, default=DEFAULTS[kind])
            else:
                update.add_column(name, STRUCT_TYPE if kind == STRUCT else kind)
        self._look()

    @rule(data=st.data())
    def drop_column(self, data: st.DataObject) -> None:
        """A column that no partition spec is of, or a field of a struct."""
        parent, fields = self._parent(data)
        can_go = [part["name"] for part in fields if part["id"] not in self.sources]
        if len(fields) > 1 and can_go:
            with self.table.update_schema() as update:
                update.delete_column(parent + data.draw(st.sampled_from(can_go), "name"))
            self._look()

    @rule(data=st.data())
    def rename_column(self, data: st.DataObject) -> None:
        """Names are few: one that another column had is given again."""
        parent, fields = self._parent(data)
        names = [part["name"] for part in fields]
        free = [name for name in NAMES if name not in names]
        if free:
            old, new = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(free))
            with self.table.update_schema() as update:
                update.rename_column(parent + old, new)
            self._look()

    @rule(data=st.data())
    def promote_column(self, data: st.DataObject) -> None:
        """A wider type."""
        parent, fields = self._parent(data)
        narrow = [part for part in fields if str(part["type"]) in PROMOTED]
        if narrow:
            part = data.draw(st.sampled_from(narrow), "column")
            with self.table.update_schema() as update:
                update.update_column(parent + part["name"], PROMOTED[part["type"]])
            self._look()

    @rule(data=st.data())
    def partition(self, data: st.DataObject) -> None:
        """Another partition spec: none, or one field."""
        names = {part["id"]: part["name"] for part in self.fields}
        choices = [
            text.format(part["name"])
            for part in self.fields
            for text in TRANSFORMS.get(str(part["type"]), ())
        ]
        chosen = data.draw(st.sampled_from([None, *choices]), "partitioning")
        now = [part for part in self.spec["fields"] if part["transform"] != "void"]
        with self.table.update_spec() as update:
            for part in now:
                update.remove_field(part["name"])
            if chosen is not None and chosen not in [_expression(part, names) for part in now]:
                update.add_field(chosen)
        self._look()

    # -- reads ----

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        """A predicate over the rows of now, which is answered once the history ends."""
        snapshots = self.oracle.snapshots
        asked = data.draw(questions(snapshots[-1].fields, VALUES), "question")
        self.asked.append(Asked(len(snapshots) - 1, asked))

    def _parent(self, data: st.DataObject) -> tuple[str, list[Field]]:
        """Where to change the schema: at the top, or in a struct."""
        structs = [part for part in self.fields if isinstance(part["type"], dict)]
        if structs and data.draw(st.booleans(), "in a struct"):
            part = data.draw(st.sampled_from(structs), "struct")
            return f"{part['name']}.", part["type"]["fields"]
        return "", self.fields

    def teardown(self) -> None:
        """Compare every snapshot and the changes between every two."""
        if hasattr(self, "table"):
            self.check()


def _expression(part: dict[str, Any], names: dict[int, str]) -> str:
    source = names[part["source-id"]]
    transform, _, parameter = part["transform"].rstrip("]").partition("[")
    if transform == "identity":
        return source
    return f"{transform}({parameter}, {source})" if parameter else f"{transform}({source})"
