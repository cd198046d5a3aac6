"""All recorded statements by the faces of an attached session, and by a client of a server.

`test_catalog_faces.py` has one statement of each kind by every face.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession as Client
from sql_cases import FILES, RECORDED, Player, cases_of, columns_of, state_of
from test_catalog_faces import (
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
def client_of_server(places: Places) -> Iterator[Any]:
    """A client of Spark Connect in this process, which asks for tables of its own."""
    client = Client.builder.remote(f"sc://127.0.0.1:{places.asked('served').connect}").create()
    try:
        client.sql("CREATE NAMESPACE lake.db")
        yield lambda text: client.sql(in_full(text))
    finally:
        for namespace in ("db", "db2", "second"):
            client.sql(f"DROP NAMESPACE IF EXISTS lake.{namespace} CASCADE")
        client.stop()


OF_USE = ("names.test", "parameters.test", "show.test", "views.test")
"""Files about what is in use, for faces that said `USE lake`."""

FACES = [
    Face("spark.sql", without_use),
    Face("USE lake.db", use_of_namespace),
    Face("two lakes", two_lakes),
    Face("transaction", in_transaction_if_it_can),
    Face("EXECUTE IMMEDIATE", immediate),
    Face("client of Connect", client_of_server),
]


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
        if face.name == "transaction" or name not in OF_USE
    ],
)
def test_each_recorded_statement(request, tmp_path, face, name):
    """It is answered as the Java runtime answers it; parameters are given by `lake.sql`."""
    places = Places(request.getfixturevalue, tmp_path, [])
    is_ours = face.opened is not client_of_server
    player = Player(None, tells=False, known={"place": str(tmp_path / "moved")})
    player.columns = columns_of
    if is_ours:
        player.state = lambda: state_of(places.lake)
    failures = []
    with face.opened(places) as run:
        for case in cases_of(name, RECORDED):
            by_lake = is_ours and case.args is not None
            player.sql = places.lake.sql if by_lake else (lambda text, args: run(text))
            try:
                player.play(case, name)
            except AssertionError as error:
                failures.append(str(error))
    assert failures == [], "\n".join(failures)
