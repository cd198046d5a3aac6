"""Rules for delete, update, merge and upsert: Frazil writes the files, plain rows say what holds.

What a command wrote is read back with PyArrow and PyIceberg and told to the oracle, whose rows must
then be those that the model expects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from history_files import as_written, entry_of, partition_of
from history_machine import VALUES, History, types, versions
from history_oracle import Data, Delete, Field, Row, counted, in_schema, leaves
from history_questions import questions
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyspark.sql.types import StructType

from frazil.format.manifests import Content

modes = st.sampled_from(["copy-on-write", "merge-on-read"])

FIRST_RESERVED_ID = 2147483000
KEY_TYPES = set(VALUES) - {"float", "double", "boolean"}


def _has_data(history: CommandHistory) -> bool:
    return bool(history.oracle.data)


class CommandHistory(History):
    """A history with row-level commands among its commits."""

    @precondition(_has_data)
    @rule(data=st.data(), mode=modes)
    def delete_rows(self, data: st.DataObject, mode: str) -> None:
        """DELETE by a predicate."""
        asked = data.draw(questions(self.fields, VALUES), "where")
        expected = [row for row in self._live() if asked.test(row) is not True]
        self._run("delete", mode, expected, lambda table: table.delete(asked.text))

    @precondition(_has_data)
    @rule(data=st.data(), mode=modes)
    def update_rows(self, data: st.DataObject, mode: str) -> None:
        """UPDATE of a column or a field, which may move rows to other partitions."""
        asked = data.draw(questions(self.fields, VALUES), "where")
        way, value = self._new_value(data)
        expected = [
            _with(row, way, value) if asked.test(row) is True else row for row in self._live()
        ]
        values = {_name(way): _said(way[-1]["type"], value)}
        self._run("update", mode, expected, lambda table: table.update(values, asked.text))

    @precondition(_has_data)
    @rule(data=st.data(), mode=modes, whole=st.booleans())
    def merge_rows(self, data: st.DataObject, mode: str, whole: bool) -> None:
        """MERGE that deletes, changes and adds rows, and deletes rows that match nothing."""
        key = self._key(data)
        if key is None:
            return
        kind = str(key["type"])
        kinds = data.draw(
            st.dictionaries(VALUES[kind], st.integers(0, 2), min_size=1, max_size=3), "source"
        )
        way, value = self._new_value(data)
        asked = data.draw(questions(self.fields, VALUES), "by source")
        rows = [f"({_said(kind, given)}, {number})" for given, number in kinds.items()]
        source = self.table.spark.sql(f"select * from values {', '.join(rows)} s(source_key, what)")
        live, expected = self._live(), []
        for row in live:
            given = kinds.get(row[key["id"]])
            if given is None:
                if not (whole and asked.test(row) is True):
                    expected.append(row)
            elif given:
                expected.append(_with(row, way, value) if given == 1 else row)
        held = {row[key["id"]] for row in live}
        for given, number in kinds.items():
            if given not in held and number:
                added = {part["id"]: part.get("write-default") for part in self.fields}
                expected.append({**added, key["id"]: given})

        def run(table: Any) -> Any:
            merge = (
                table.merge(source, f"target.{key['name']} = source.source_key")
                .when_matched_delete(condition="source.what = 0")
                .when_matched_update(
                    {_name(way): _said(way[-1]["type"], value)}, condition="source.what = 1"
                )
                .when_not_matched_insert(
                    {key["name"]: "source.source_key"}, condition="source.what > 0"
                )
            )
            if whole:
                merge.when_not_matched_by_source_delete(condition=asked.text)
            return merge.execute()

        self._run("merge", mode, expected, run)

    @precondition(_has_data)
    @rule(data=st.data(), mode=modes)
    def upsert_rows(self, data: st.DataObject, mode: str) -> None:
        """Upsert by one column; a NULL in it matches nothing."""
        key = self._key(data)
        if key is None:
            return
        given = {row[key["id"]]: row for row in self._rows(data)}
        live = self._live()
        held = {row[key["id"]] for row in live} - {None}
        expected = [
            given[row[key["id"]]] if row[key["id"]] in held & given.keys() else row for row in live
        ]
        expected += [row for value, row in given.items() if value not in held]
        named = [in_schema(self.fields, row) for row in given.values()]
        source = self.table.spark.createDataFrame(named, _nullable(self.table.to_df().schema))
        self._run("merge", mode, expected, lambda table: table.upsert(source, keys=[key["name"]]))

    # -- parts ----

    def _live(self) -> list[Row]:
        """The rows of now, with a value for each field of the schema of now."""
        return [as_written(self.fields, row) for row in self.oracle.snapshots[-1].rows]

    def _key(self, data: st.DataObject) -> Field | None:
        keys = [part for part in self.fields if str(part["type"]) in KEY_TYPES]
        return data.draw(st.sampled_from(keys), "key") if keys else None

    def _new_value(self, data: st.DataObject) -> tuple[tuple[Field, ...], Any]:
        way = data.draw(st.sampled_from(list(leaves(self.fields))), "column")
        return way, data.draw(st.none() | VALUES[way[-1]["type"]], "value")

    def _run(
        self, name: str, mode: str, expected: Sequence[Row], command: Callable[[Any], Any]
    ) -> None:
        """Run a command and compare the rows that its files leave with the expected ones."""
        before = self.oracle.snapshots[-1]
        self.table.set_properties({f"write.{name}.mode": mode})
        done = command(self.table)
        wanted = counted((in_schema(self.fields, row) for row in expected), self.fields)
        if done.changes_nothing:
            assert self._metadata["current-snapshot-id"] == before.snapshot_id
            assert before.state(self.fields) == wanted
            return
        added, removed = self._written()
        self._committed(added, removed)
        assert self.oracle.snapshots[-1].state(self.fields) == wanted
        assert done.rows_inserted - done.rows_deleted == len(expected) - len(before.rows)

    def _written(self) -> tuple[list[Data | Delete], list[Data | Delete]]:
        """What the last commit added and removed, by what the table lists now."""
        listed = self.table.inspect.files().to_dicts()
        live = {(each["file_path"], each["referenced_data_file"]): each for each in listed}
        paths = {path for path, _ in live}
        known = {each.path for each in self.oracle.data}
        known_deletes = {(each.file.file_path, each.vector_of) for each in self.oracle.deletes}
        removed: list[Data | Delete] = [
            *(each for each in self.oracle.data if each.path not in paths),
            *(
                each
                for each in self.oracle.deletes
                if each.file.file_path not in paths
                or (each.vector_of and (each.file.file_path, each.vector_of) not in live)
            ),
        ]
        data = [
            self._data(each)
            for (path, _), each in live.items()
            if each["content"] == 0 and path not in known
        ]
        places = {each.path: each.place for each in [*self.oracle.data, *data]}
        deletes = []
        for (path, about), each in live.items():
            vector_of = about if each["file_format"].lower() == "puffin" else None
            if each["content"] == 1 and (path, vector_of) not in known_deletes:
                deletes.append(_delete(each, vector_of, places))
        return [*data, *deletes], removed

    def _data(self, listed: Mapping[str, Any]) -> Data:
        path = listed["file_path"]
        table = pq.ParquetFile(path.removeprefix("file://")).read()
        columns = {_id(part): part for part in table.schema if _id(part) < FIRST_RESERVED_ID}
        rows = [
            {number: _value(part, row[part.name]) for number, part in columns.items()}
            for row in table.to_pylist()
        ]
        (values,) = {partition_of(self.spec, self.fields, row) for row in rows}
        place = (self.spec["spec-id"], values)
        assert listed["spec_id"] == place[0]
        return Data(
            entry_of(Path(path.removeprefix("file://")), place, len(rows)), path, place, rows
        )


class CommandsFirst(CommandHistory):
    """A history that begins with one of each command."""

    @initialize(data=st.data(), version=versions, kinds=st.lists(types, min_size=1, max_size=3))
    def make(self, data: st.DataObject, version: int, kinds: list[str]) -> None:
        """A table with rows of two commits, and the commands."""
        super().make(data, version, kinds)
        self.append(data)
        commands = [self.delete_rows, self.update_rows, self.upsert_rows]
        for command in data.draw(st.permutations(commands), "commands"):
            if _has_data(self):
                command(data, data.draw(modes, "mode"))
        if _has_data(self):
            self.merge_rows(data, data.draw(modes, "mode"), data.draw(st.booleans(), "whole"))


def _delete(
    listed: Mapping[str, Any], vector_of: str | None, places: Mapping[str, tuple[int, Any]]
) -> Delete:
    path = Path(listed["file_path"].removeprefix("file://"))
    if vector_of is None:
        found = pq.ParquetFile(path).read(["file_path", "pos"]).to_pylist()
        pairs = frozenset((row["file_path"], row["pos"]) for row in found)
    else:
        vectors = deletion_vectors_from_puffin_file(PuffinFile(path.read_bytes()))
        (mine,) = [each for each in vectors if each.referenced_data_file == vector_of]
        pairs = frozenset((vector_of, position) for position in mine.to_vector().to_pylist())
    (place,) = {places[about] for about, _ in pairs}
    more: dict[str, Any] = {}
    if vector_of is not None:
        more = {
            "file_format": "puffin",
            "content_offset": listed["content_offset"],
            "content_size_in_bytes": listed["content_size_in_bytes"],
        }
    entry = entry_of(
        path,
        place,
        len(pairs),
        content=Content.POSITION_DELETES,
        referenced_data_file=listed["referenced_data_file"],
        **more,
    )
    return Delete(entry, place, is_global=False, positions=pairs, vector_of=vector_of)


def _id(part: pa.Field) -> int:
    return int(part.metadata[b"PARQUET:field_id"])


def _value(part: pa.Field, value: Any) -> Any:
    """A value with the fields of structs by their ids."""
    if value is None or not pa.types.is_struct(part.type):
        return value
    return {_id(inner): _value(inner, value[inner.name]) for inner in part.type}


def _with(row: Row, way: Sequence[Field], value: Any) -> Row:
    """A row with another value of a leaf; to set a field of a NULL struct makes the struct."""
    first, *below = way
    if not below:
        return {**row, first["id"]: value}
    struct = row.get(first["id"]) or {part["id"]: None for part in first["type"]["fields"]}
    return {**row, first["id"]: _with(struct, below, value)}


def _name(way: Sequence[Field]) -> str:
    return ".".join(part["name"] for part in way)


def _said(kind: str, value: Any) -> str:
    return "null" if value is None else f"cast('{value}' as {kind})"


def _nullable(schema: StructType) -> StructType:
    """The schema with NULL allowed everywhere: a default that no file overrides is never NULL."""
    text = re.sub(r'"(nullable|containsNull|valueContainsNull)":false', r'"\1":true', schema.json())
    return StructType.fromJson(json.loads(text))
