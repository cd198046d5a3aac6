"""Making the tables of the matrix with each writer, and reading them with each engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from interop_cases import Filter, TypeCase, schema_json, shown_rows
from interop_engines import (
    DuckDB,
    Results,
    read_with_frazil,
    read_with_java,
    read_with_pyiceberg,
    spark_rows,
    spark_rows_for_java,
)
from interop_java import append_java_records, java_catalog, read_with_java_records
from interop_limits import NOT_IN_SPARK, filter_limit, read_limit

from frazil.format.schema import Schema
from frazil.spark.lake import Lake

ENGINES = ("frazil", "java", "pyiceberg", "duckdb")


def write_with_frazil(spark: Any, lake: Lake, name: str, case: TypeCase, version: int) -> None:
    """A table that Frazil makes, evolves and fills."""
    table = lake.create_table(
        f"db.{name}", Schema.from_json(schema_json(case)), format_version=version
    )
    previous: tuple[str, ...] = ()
    for stage, spec in enumerate(case.stages):
        if spec != previous:
            with table.update_spec() as change:
                for expression in previous:
                    change.remove_field(expression)
                for expression in spec:
                    change.add_field(expression)
        previous = spec
        table.append(spark_rows(spark, case, case.rows_of_stage(stage)))


def write_with_java(spark: Any, name: str, case: TypeCase, version: int) -> None:
    """A table that the Java runtime makes, evolves and fills; as records for types Spark lacks."""
    jvm = spark._jvm
    schema = jvm.org.apache.iceberg.SchemaParser.fromJson(json.dumps(schema_json(case)))
    identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"db.{name}")
    spec = jvm.org.apache.iceberg.PartitionSpec.unpartitioned()
    properties = {"format-version": str(version), "write.distribution-mode": "hash"}
    table = java_catalog(spark, "java_sql").createTable(identifier, schema, spec, properties)
    expressions = jvm.org.apache.iceberg.expressions.Expressions
    previous: tuple[str, ...] = ()
    for stage, fields in enumerate(case.stages):
        if fields != previous:
            change = table.updateSpec()
            for field in previous:
                change.removeField(_java_term(expressions, field))
            for field in fields:
                change.addField(_java_term(expressions, field))
            change.commit()
        previous = fields
        rows = case.rows_of_stage(stage)
        if case.name in NOT_IN_SPARK:
            append_java_records(table, spark, case, rows)
        else:
            spark_rows_for_java(spark, case, rows).writeTo(f"java_sql.db.{name}").append()
            table.refresh()


def _java_term(expressions: Any, text: str) -> Any:
    """A partition field's term: ``v``, ``year(v)`` or ``bucket(4, v)``."""
    name, *parameters = re.findall(r"\w+", text)
    if not parameters:
        return expressions.ref(name)
    *width, column = parameters
    return getattr(expressions, name)(column, *map(int, width))


@dataclass(frozen=True, slots=True)
class Engines:
    """The readers of the tables in the lake that Frazil and the Java runtime share."""

    spark: Any
    lake: Lake
    duck: DuckDB

    def read(self, engine: str, name: str, case: TypeCase, filters: Sequence[Filter]) -> Results:
        """The rows of a table, without a filter and then with each."""
        match engine:
            case "frazil":
                return read_with_frazil(self.lake.load_table(f"db.{name}"), case, filters)
            case "java":
                return read_with_java(self.spark, f"java_sql.db.{name}", case, filters)
            case "java_records":
                return read_with_java_records(self.spark, f"java_sql.db.{name}", case, filters)
        metadata = self.lake.load_table(f"db.{name}").metadata_location
        if engine == "pyiceberg":
            return read_with_pyiceberg(metadata, case, filters)
        return self.duck.read(metadata, case, filters)

    def check(self, engine: str, name: str, case: TypeCase, version: int) -> None:
        """Assert that an engine reads exactly the case's rows, or what its limits say."""
        refusal = read_limit(engine, case.name, version)
        if refusal is not None:
            with pytest.raises(Exception, match=refusal.message):
                self.read(engine, name, case, ())
            return
        answered = [
            wanted for wanted in case.filters if not filter_limit(engine, case.name, wanted.op)
        ]
        results = self.read(engine, name, case, answered)
        assert shown_rows(results[0]) == shown_rows(case.rows)
        for wanted, rows in zip(answered, results[1:], strict=True):
            assert shown_rows(rows) == _expected(case, wanted), wanted
        for wanted in case.filters:
            limit = filter_limit(engine, case.name, wanted.op)
            if limit is not None and limit.message is not None:
                with pytest.raises(Exception, match=limit.message):
                    self.read(engine, name, case, [wanted])
        self.check_wrong_answers(engine, name, case)

    def check_wrong_answers(self, engine: str, name: str, case: TypeCase) -> None:
        """Assert that an engine loses rows of a table under the filters that its limits name."""
        for wanted in case.filters:
            limit = filter_limit(engine, case.name, wanted.op)
            if limit is not None and limit.message is None:
                rows = shown_rows(self.read(engine, name, case, [wanted])[1])
                assert set(rows) < set(_expected(case, wanted)), f"{wanted} is answered rightly"


def _expected(case: TypeCase, wanted: Filter) -> list[tuple[int, str]]:
    return shown_rows(row for row in case.rows if wanted.keeps(row[1]))


class MadeOnce:
    """Tables that are made when a test first asks for them; a failure is kept and raised again."""

    def __init__(self, make: Callable[[str, TypeCase, int], None], prefix: str) -> None:
        self._make = make
        self._prefix = prefix
        self._outcomes: dict[str, Exception | None] = {}

    def __call__(self, case: TypeCase, version: int) -> str:
        """The name of the table of a type and a version."""
        name = f"{self._prefix}{version}_{case.name}"
        if name not in self._outcomes:
            try:
                self._make(name, case, version)
                self._outcomes[name] = None
            except Exception as error:
                self._outcomes[name] = error
        outcome = self._outcomes[name]
        if outcome is not None:
            raise outcome
        return name
