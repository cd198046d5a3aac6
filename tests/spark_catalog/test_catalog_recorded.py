"""All recorded statements by the faces of an attached session, and by clients of a server.

`tests/spark_sql` runs them by `lake.sql`, after `USE lake`, and over Connect where the server has
no Frazil. `test_catalog_faces.py` has one statement of each kind by every face.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from jdbc_client import Driver
from pyspark.sql.connect.session import SparkSession as Client
from sql_cases import FILES, RECORDED, Case, Player, cases_of, columns_of, state_of
from test_catalog_faces import (
    Answer,
    Face,
    Places,
    immediate,
    in_full,
    in_transaction,
    two_lakes,
    use_of_namespace,
    without_use,
)

from frazil.errors import UnsupportedError


@contextmanager
def in_transaction_if_it_can(places: Places) -> Iterator[Any]:
    """Each statement in a transaction; what none can hold, by `lake.sql`."""
    with in_transaction(places) as run:

        def either(text: str) -> Any:
            try:
                return run(text)
            except UnsupportedError as error:
                if "a transaction cannot" not in str(error):
                    raise
                return places.lake.sql(text)

        yield either


@contextmanager
def emptied(sql: Callable[[str], Any]) -> Iterator[None]:
    """Give a server's lake the namespace `db`, and take from it what the statements made."""
    try:
        sql("CREATE NAMESPACE lake.db")
        yield
    finally:
        for (name,) in rows_of(sql("SHOW NAMESPACES IN lake")):
            sql(f"DROP NAMESPACE IF EXISTS lake.{name} CASCADE")


def rows_of(found: Any) -> list[Any]:
    """The rows of an answer, which are there already by JDBC."""
    return found if isinstance(found, list) else found.collect()


@contextmanager
def client_of_server(places: Places) -> Iterator[Any]:
    """A client of Spark Connect in this process, which asks for tables of its own."""
    client = Client.builder.remote(f"sc://127.0.0.1:{places.asked('served').connect}").create()
    try:
        with emptied(client.sql):
            yield lambda text: client.sql(in_full(text))
    finally:
        client.stop()


@contextmanager
def client_in_use(places: Places) -> Iterator[Any]:
    """The same client, which said USE lake: it gives parameters itself."""
    client = Client.builder.remote(f"sc://127.0.0.1:{places.asked('served').connect}").create()
    try:
        client.sql("USE lake")
        with emptied(client.sql):
            yield client.sql
    finally:
        client.stop()


@contextmanager
def driver_of_jdbc(places: Places) -> Iterator[Any]:
    """Hive's driver of JDBC, whose values are texts."""
    driver = Driver(places.spark._jvm, places.asked("served").thrift)
    try:
        with emptied(driver.run):
            yield lambda text: Answer(driver.run(in_full(text)))
    finally:
        driver.connection.close()


def where_texts_are_alike(case: Case) -> list[int]:
    """The places of columns whose values are the same text by JDBC."""
    types = [each.rpartition(" ")[2] for each in _COMMA.split(case.columns or "")]
    return [at for at, each in enumerate(types) if not each.startswith(_OTHER_TEXTS)]


_COMMA = re.compile(r", (?![^()]*\))")
"""A comma between columns; types have no spaces, and a name has its parentheses in pairs."""
_OTHER_TEXTS = ("array", "map", "struct", "binary", "timestamp", "decimal(38")

_OF_JAVA = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def by_places(case: Case, run: Callable[[str], Any]) -> tuple[Case, Callable[[str], Answer]]:
    """A case with the columns alone whose texts are alike, and what runs it so."""
    places = where_texts_are_alike(case)

    def values(row: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(_OF_JAVA.get(row[at], row[at]) for at in places)

    rows = tuple("|".join(values(row.split("|"))) for row in case.rows)
    return replace(case, rows=rows), lambda text: Answer([*map(values, run(text).collect())])


OF_USE = ("names.test", "parameters.test", "show.test", "views.test")
"""Files about what is in use, for faces that said `USE lake`."""

FACES = [
    Face("spark.sql", without_use),
    Face("USE lake.db", use_of_namespace),
    Face("two lakes", two_lakes),
    Face("transaction", in_transaction_if_it_can),
    Face("EXECUTE IMMEDIATE", immediate),
    Face("client of Connect", client_of_server),
    Face("client of USE", client_in_use),
    Face("JDBC", driver_of_jdbc, has_columns=False),
]
IN_USE = ("transaction", "client of USE")


@pytest.fixture
def lake_settings(lake_settings):
    """A lake named `lake`, as statements call it."""
    return {**lake_settings, "name": "lake"}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "face"),
    [
        pytest.param(name, face, id=f"{name}-{face.name}")
        for name in FILES
        for face in FACES
        if name not in OF_USE or face.name in IN_USE
    ],
)
def test_each_recorded_statement(request, tmp_path, face, name):
    """It is answered as the Java runtime answers it; `lake.sql` and clients give parameters."""
    places = Places(request.getfixturevalue, tmp_path, [])
    is_ours = face.opened not in (client_of_server, client_in_use, driver_of_jdbc)
    player = Player(None, tells=False, known={"place": str(tmp_path / "moved")})
    player.columns = columns_of if face.has_columns else None
    if is_ours:
        player.state = lambda: state_of(places.lake)
    failures = []
    with face.opened(places) as run:
        for case in cases_of(name, RECORDED):
            said, asked = case, run
            if case.kind == "rows" and case.columns and not face.has_columns:
                said, asked = by_places(case, run)
            if is_ours and case.args is not None:
                player.sql = places.lake.sql
            else:
                given = () if case.args is None else (case.args,)
                player.sql = lambda text, _, asked=asked, given=given: asked(text, *given)
            try:
                player.play(said, name)
            except AssertionError as error:
                failures.append(str(error))
    assert failures == [], "\n".join(failures)
