"""Statements: TPC-DS beside the Java runtime, before and after changes, and what a text costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from bench import clients, tpcds
from bench.context import Context, run_all
from bench.figures import Bar, Figure, compare, interleaved, limit
from frazil.spark.attached.configured import ConfiguredLakes
from frazil.spark.catalog.sessions import serve_sessions

PARTS = ("queries", "changed", "texts", "parser", "clients")

NAMESPACE = "tpcds"
LAKE = "attached"
ROWS_OF_SCALE_ONE = 10_000_000
"""`--rows` of so many takes TPC-DS's scale 1: 2.9 million rows in the largest table."""

SIX_TIMES = 6_000_000
"""`--rows` of so many and more have bars of their own; those below are of a sixth of it."""

CHANGES = (
    "DELETE FROM {table} WHERE {day} % 100 = 7",
    "UPDATE {table} SET {day} = {day} WHERE {day} % 20 = 3",
)
"""One row in a hundred is deleted, five are updated."""

SELECTIVE_JOIN = (
    "SELECT i_category, count(*), sum(ss_net_paid) FROM store_sales "
    "JOIN date_dim ON ss_sold_date_sk = d_date_sk JOIN item ON ss_item_sk = i_item_sk "
    "WHERE d_year = 2001 AND d_moy = 3 GROUP BY i_category"
)


def run(context: Context) -> Iterator[Figure]:
    """Figures of statements; those beside the Java runtime where it is there."""
    if context.part in (None, "queries", "changed"):
        yield from _queries(context)
    if context.part in (None, "texts"):
        yield from _texts(context)
    if context.part in (None, "parser"):
        yield from _parser(context)
    if context.part in (None, "clients"):
        yield from clients.run(context)


def _queries(context: Context) -> Iterator[Figure]:
    folder = context.folder / "tpcds-parquet"
    tpcds.write_parquet(folder, context.rows / ROWS_OF_SCALE_ONE)
    tpcds.make_tables(context.spark, context.lake, NAMESPACE, folder)
    context.lake.sql(f"USE {NAMESPACE}")
    if not context.has_java:
        return
    context.spark.sql(f"USE {context.java_name(NAMESPACE)}")
    if context.part != "changed":
        most = 0.92 if context.rows >= SIX_TIMES else 0.93
        yield _whole_set(context, "TPC-DS, 99 queries", at_most=most)
        yield _pair(context, "selective join", SELECTIVE_JOIN, at_most=0.9)
    if context.part != "queries":
        for table, day in tpcds.FACTS.items():
            name = f"{NAMESPACE}.{table}"
            context.lake.load_table(name).set_properties(
                {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update")}
            )
            for text in CHANGES:
                context.lake.sql(text.format(table=name, day=day))
        most = 1.0 if context.rows >= SIX_TIMES else 0.95
        yield _whole_set(context, "TPC-DS, 99 queries, after changes", at_most=most)


def _whole_set(context: Context, name: str, *, at_most: float) -> Figure:
    ours, java = 0.0, 0.0
    for text in tpcds.queries().values():
        took = interleaved(_sides(context, text), rounds=max(context.rounds - 1, 1))
        ours, java = ours + took["ours"], java + took["java"]
    return compare(_named(context, name), "Java runtime", ours, java, Bar(at_most=at_most))


def _pair(context: Context, name: str, text: str, *, at_most: float) -> Figure:
    took = interleaved(_sides(context, text), rounds=15)
    bar = Bar(at_most=at_most)
    return compare(_named(context, name), "Java runtime", took["ours"], took["java"], bar)


def _named(context: Context, name: str) -> str:
    """The name of a figure, which has the size where that has bars of its own."""
    size = f", {context.rows:,} rows" if context.rows >= SIX_TIMES else ""
    return f"{name}{size}{context.suffix}"


def _sides(context: Context, text: str) -> dict[str, Callable[[], object]]:
    return {
        "ours": lambda: run_all(context.lake.sql(text)),
        "java": lambda: run_all(context.spark.sql(text)),
    }


def _texts(context: Context) -> Iterator[Figure]:
    """The same commands by text, by method and by Java's, and a statement that does nothing."""
    lake, spark = context.lake, context.spark
    if not lake.namespace_exists(NAMESPACE):
        lake.create_namespace(NAMESPACE)
    rows = context.rows // 10
    source = spark.range(rows // 10).selectExpr("id * 10 AS id", "'changed' AS v")
    for name in ("by_text", "by_method", "by_java"):
        lake.create_table(f"{NAMESPACE}.{name}", "id bigint, v string").append(
            spark.range(rows).selectExpr("id", "cast(id as string) AS v")
        )
    table = f"{NAMESPACE}.by_method"
    insert = "INSERT INTO {table} SELECT * FROM {{s}}".format
    merge = (
        "MERGE INTO {table} t USING {{s}} s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ).format
    methods: dict[str, tuple[Callable[..., str], Callable[[], object]]] = {
        "INSERT": (insert, lambda: lake.load_table(table).append(source)),
        "MERGE": (
            merge,
            lambda: (
                lake.load_table(table)
                .merge(source, on="target.id = source.id")
                .when_matched_update_all()
                .when_not_matched_insert_all()
                .execute()
            ),
        ),
    }
    for name, (text, method) in methods.items():
        sides: dict[str, Callable[[], object]] = {
            "text": partial(lake.sql, text(table=f"{NAMESPACE}.by_text"), s=source),
            "method": method,
        }
        if context.has_java:
            theirs = text(table=context.java_name(f"{NAMESPACE}.by_java"))
            sides["java"] = partial(spark.sql, theirs, s=source)
        took = interleaved(sides, rounds=15)
        title = _named(context, f"{name} by text")
        yield compare(title, "the method", took["text"], took["method"], Bar(at_most=1.0))
        if context.has_java:
            yield compare(title, "Java runtime", took["text"], took["java"], Bar(at_most=1.0))
    yield _by_sparks_writer(context, rows // 10, partial(lake.sql, insert(table=table), s=source))
    lake.sql(f"CREATE TABLE {NAMESPACE}.one (id BIGINT)")
    lake.sql(f"INSERT INTO {NAMESPACE}.one VALUES (1)")
    took = interleaved(
        {
            "ours": lambda: lake.sql(f"SELECT * FROM {NAMESPACE}.one WHERE id = 1"),
            "spark": lambda: spark.sql("SELECT * FROM range(1) WHERE id = 1"),
        },
        rounds=15,
    )
    over = took["ours"] - took["spark"]
    yield limit(f"lake.sql over spark.sql{context.suffix}", over, at_most=0.06)


def _by_sparks_writer(context: Context, rows: int, by_text: Callable[[], object]) -> Figure:
    """The rows of an INSERT through Spark's analyzer, its catalogs and its writer: another way."""
    serve_sessions(context.spark, ConfiguredLakes({LAKE: context.lake.catalog}).attach)
    session: Any = context.spark.newSession()
    made = session._jsparkSession.sql(f"SELECT id * 10 AS id, 'changed' AS v FROM range({rows})")
    written = f"{LAKE}.{NAMESPACE}.by_method"
    sides = {"text": by_text, "writer": lambda: made.writeTo(written).append()}
    took = interleaved(sides, rounds=15)
    title = _named(context, "INSERT by text")
    return compare(title, "Spark's own writer", took["text"], took["writer"], Bar())


def _parser(context: Context) -> Iterator[Figure]:
    """A statement without a lake, and a query of one row: attached, and as a server's clients."""
    lake, spark = context.lake, context.spark
    table = f"{NAMESPACE}.by_parser"
    if not lake.namespace_exists(NAMESPACE):
        lake.create_namespace(NAMESPACE)
    lake.sql(f"CREATE TABLE {table} (id BIGINT)")
    lake.sql(f"INSERT INTO {table} VALUES (1)")
    plain = spark.newSession()
    plain.sql("SELECT 1")  # From its first statement on a session keeps its parser.
    serve_sessions(spark, ConfiguredLakes({LAKE: lake.catalog}).attach)
    lake.attach(name=LAKE)
    served = _as_clients(spark.newSession())
    sides = {"attached": spark.sql, "a server's": served, "plain": plain.sql}
    took = interleaved(_runs(sides, dict.fromkeys(sides, "SELECT 1 AS one")), rounds=200)
    for name in ("attached", "a server's"):
        title = f"a statement without a lake over plain Spark, {name} session{context.suffix}"
        yield limit(title, took[name] - took["plain"], at_most=0.001)
    if context.has_java:
        sides = {"attached": spark.sql, "a server's": served, "java": spark.sql}
        names = dict.fromkeys(sides, f"{LAKE}.{table}") | {"java": context.java_name(table)}
        texts = {side: f"SELECT * FROM {name} WHERE id = 1" for side, name in names.items()}
        took = interleaved(_runs(sides, texts, whole=True), rounds=30)
        for name in ("attached", "a server's"):
            title = f"a query of one row by spark.sql, {name} session{context.suffix}"
            yield compare(title, "Java runtime", took[name], took["java"], Bar(at_most=1.0))
    lake.detach()


def _runs(
    sides: Mapping[str, Callable[[str], DataFrame]],
    texts: Mapping[str, str],
    *,
    whole: bool = False,
) -> dict[str, Callable[[], object]]:
    """A text for each side; all rows of it, or what is there without them."""

    def one(run: Callable[[str], DataFrame], text: str) -> Callable[[], object]:
        return lambda: run_all(run(text)) if whole else run(text)

    return {name: one(run, texts[name]) for name, run in sides.items()}


def _as_clients(session: Any) -> Callable[[str], DataFrame]:
    """Statements as a server runs them: by Spark itself, without PySpark's methods."""
    return lambda text: DataFrame(session._jsparkSession.sql(text), session)
