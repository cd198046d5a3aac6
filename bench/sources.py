"""A query's tables by plans in the place of relations, or by a source of Spark's kind in Python.

The other way, which Frazil does not take: a catalog of Spark gives tables with a `ScanBuilder`, an
object of Python that is told a query's predicates and columns and makes Spark's own scan of Parquet
files, which are those of the same plan of the same table, listed in a file log.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import polars as pl
from pyspark.sql import Row

import frazil
from bench.context import Context
from bench.figures import Figure, interleaved, report
from frazil.spark.abilities import has_class, streaming_class
from frazil.spark.catalog.tables import java_columns, java_type
from frazil.spark.files.parquet.file_log import log_lines
from frazil.spark.plans.machine import JavaObject, Machine, answers, machine_of, value_of
from frazil.spark.session.facts import type_support
from frazil.spark.types import schema_to_spark

PLANS, SOURCE, NAMESPACE = "by_plans", "by_source", "sources"
FILES, KEYS_OF_A_FILE = 40, 10

QUERIES: Final = {
    "a row by its key": "SELECT week FROM {lake}.sources.days WHERE k = 7",
    "count(*)": "SELECT count(*) FROM {lake}.sources.facts",
    "sum over a tenth": "SELECT sum(x) FROM {lake}.sources.facts WHERE k < 40",
    "selective join": "SELECT sum(f.x) FROM {lake}.sources.facts f "
    "JOIN {lake}.sources.days d ON f.k = d.k WHERE d.week = 5",
}
_CONNECTOR: Final = "org.apache.spark.sql.connector"


def run(context: Context) -> Iterator[Figure]:
    """Each query both ways, in turns; the rows are compared before."""
    lake, spark = context.lake, context.spark
    _make_tables(context)
    machine = machine_of(spark)
    lake.attach(name=PLANS)
    session: Any = spark
    catalogs = value_of(session._jsparkSession.sessionState().catalogManager(), "catalogs")
    with tempfile.TemporaryDirectory(dir=context.folder) as logs:
        catalogs.put(SOURCE, SourceCatalog(machine, session, lake, Path(logs)))
        try:
            for name, text in QUERIES.items():
                yield _figure(context, name, text)
        finally:
            catalogs.remove(SOURCE)
            lake.detach()
    for table in ("facts", "days"):
        lake.purge_table(f"{NAMESPACE}.{table}")


def _make_tables(context: Context) -> None:
    """The facts in files of ten keys each, and a table of the keys."""
    lake, spark = context.lake, context.spark
    lake.create_namespace(NAMESPACE)
    facts = lake.create_table(f"{NAMESPACE}.facts", "k int, id bigint, x bigint, y double")
    for place in range(FILES):
        first = place * KEYS_OF_A_FILE
        rows = spark.range(context.rows // FILES).selectExpr(
            f"int(id % {KEYS_OF_A_FILE} + {first}) AS k", "id", "xxhash64(id) % 1000 AS x",
            "rand(7) AS y",
        )  # fmt: skip
        facts.append(rows.coalesce(1))
    days = lake.create_table(f"{NAMESPACE}.days", "k int, week int")
    keys = spark.range(FILES * KEYS_OF_A_FILE)
    days.append(keys.selectExpr("int(id) AS k", "int(id div 7) AS week").coalesce(1))


def _figure(context: Context, name: str, text: str) -> Figure:
    """What a query takes both ways.

    Raises:
        AssertionError: they have different rows.
    """

    def rows(lake: str) -> list[Row]:
        return context.spark.sql(text.format(lake=lake)).collect()

    assert rows(PLANS) == rows(SOURCE), f"{name}: {rows(PLANS)}, {rows(SOURCE)}"
    sides = {lake: partial(rows, lake) for lake in (PLANS, SOURCE)}
    took = interleaved(sides, rounds=7, warm=2)
    title = f"{name}, by plans{context.suffix}"
    return report(title, took[PLANS], unit="s", against="a ScanBuilder", theirs=took[SOURCE])


class SourceCatalog(JavaObject):
    """A catalog of Spark, as far as reads of tables by name ask it."""

    def __init__(self, machine: Machine, spark: Any, lake: frazil.Lake, logs: Path) -> None:
        self.machine = machine
        self.spark, self.lake, self.logs = spark, lake, logs

    def name(self) -> str:
        """Its name."""
        return SOURCE

    def capabilities(self) -> Any:
        """None."""
        return self.machine.jvm.java.util.HashSet()

    def tableStateOptionKeys(self) -> Any:
        """None: no option says which rows are read."""
        return self.machine.jvm.java.util.HashSet()

    @answers()
    def loadTable(self, identifier: Any, *more: Any) -> Any:
        """Return a table as it is now."""
        name = (*identifier.namespace(), identifier.name())
        return SourceTable(self, self.lake.load_table(name))

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [f"{_CONNECTOR}.catalog.TableCatalog"]


class SourceTable(JavaObject):
    """A table without deletes, which is read by scans of Spark's."""

    def __init__(self, catalog: SourceCatalog, table: frazil.Table) -> None:
        self.machine = catalog.machine
        self.catalog, self.table = catalog, table
        support = type_support(catalog.spark)
        self.columns_of_spark = schema_to_spark(table.metadata.schema, support=support)

    def name(self) -> str:
        """Its name."""
        return f"{SOURCE}.{self.table.name}"

    def id(self) -> None:
        """None: its name says which one it is."""

    def version(self) -> None:
        """None: the newest."""

    def schema(self) -> Any:
        """Its columns as a type."""
        return java_type(self.machine, self.columns_of_spark)

    def columns(self) -> Any:
        """Its columns."""
        return java_columns(self.machine, self.columns_of_spark)

    def partitioning(self) -> Any:
        """None."""
        return self.machine.array(self.machine.connector.expressions.Transform, ())

    def properties(self) -> Any:
        """None."""
        return self.machine.map({})

    def constraints(self) -> Any:
        """None."""
        return self.machine.array(self.machine.connector.catalog.constraints.Constraint, ())

    def capabilities(self) -> Any:
        """It is read."""
        found = self.machine.jvm.java.util.HashSet()
        found.add(self.machine.connector.catalog.TableCapability.BATCH_READ)
        return found

    @answers()
    def newScanBuilder(self, options: Any) -> Any:
        """Return what makes a scan of a query."""
        return SourceScanBuilder(self)

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [f"{_CONNECTOR}.catalog.SupportsRead"]


class SourceScanBuilder(JavaObject):
    """Is told what a query needs of a table, and makes Spark's scan of Parquet files of it."""

    def __init__(self, table: SourceTable) -> None:
        self.machine = table.machine
        self.table = table
        self.predicates: Sequence[Any] = ()
        self.columns = table.schema()

    def pushPredicates(self, predicates: Any) -> Any:
        """Take a query's predicates; Spark has to test all of them."""
        self.predicates = list(predicates)
        return predicates

    def pushedPredicates(self) -> Any:
        """None: Spark tests all of them."""
        return self.machine.array(self.machine.connector.expressions.filter.Predicate, ())

    def pruneColumns(self, columns: Any) -> None:
        """Take the columns that a query needs."""
        self.columns = columns

    @answers()
    def build(self) -> Any:
        """Return the scan of the files that may hold rows of the predicates."""
        jvm, catalog = self.machine.jvm, self.table.catalog
        session = catalog.spark._jsparkSession
        none, nothing = jvm.scala.Option.empty(), self.machine.sequence(())
        folder = jvm.org.apache.hadoop.fs.Path(f"file://{self._written_log()}")
        options = self.machine.empty_map().updated("recursiveFileLookup", "true")
        files = streaming_class(jvm, "MetadataLogFileIndex")(session, folder, options, none)
        to_filter = jvm.org.apache.spark.sql.internal.connector.PredicateUtils.toV1
        known = [each.get() for each in map(to_filter, self.predicates) if each.isDefined()]
        given = (
            session, session.sessionState().newHadoopConf(), files, self.table.schema(),
            self.columns, jvm.org.apache.spark.sql.types.StructType(),
            self.machine.array(jvm.org.apache.spark.sql.sources.Filter, known),
            jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap.empty(), none, nothing, nothing,
        )  # fmt: skip
        scan = jvm.org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan
        if not has_class(jvm, f"{_CONNECTOR}.read.VariantExtraction"):
            return scan(*given)
        # Spark 4.3 asks which parts of variants are read.
        variants = self.machine.array(self.machine.connector.read.VariantExtraction, ())
        return scan(*given, variants)

    def _written_log(self) -> str:
        """A folder with the log of the files that may hold rows of the predicates."""
        folder = Path(tempfile.mkdtemp(dir=self.table.catalog.logs))
        (folder / "_spark_metadata").mkdir()
        (folder / "_spark_metadata" / "0").write_bytes(log_lines(self._files()))
        return str(folder)

    def _files(self) -> pl.DataFrame:
        """The files, as the lake's own plan for the predicates has them."""
        where = " AND ".join(f"({each.toString()})" for each in self.predicates)
        path = pl.concat_str(pl.lit("file://"), pl.col("file_path").str.strip_prefix("file://"))
        files = self.table.table.scan(where or None).plan().files
        return files.select("ordinal", path=path, size="file_size_in_bytes")

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [
            f"{_CONNECTOR}.read.SupportsPushDownV2Filters",
            f"{_CONNECTOR}.read.SupportsPushDownRequiredColumns",
        ]
