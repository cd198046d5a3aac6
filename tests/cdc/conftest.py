"""A PostgreSQL whose log tells changes, and tables that follow one of it."""

import psycopg
import pytest

import frazil
from frazil.cdc.connections import Dsn
from frazil.cdc.follow import PostgresFollower
from frazil.cdc.settings import CdcSettings

PASSWORD = "s3cr3t-pw"


class Database:
    """One database, and tables of a lake that follow its tables."""

    def __init__(self, server, name, lake):
        server.new_database(name)
        self.server, self.lake, self.told = server, lake, []
        self.dsn = f"postgresql://frazil:{PASSWORD}@127.0.0.1:{server.port}/{name}"
        self.slot = f"slot_{name}"

    def run(self, *statements):
        """Each statement in a transaction of its own; gives the rows of the last."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("set timezone = 'UTC'")
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def follower(self, **settings):
        chosen = {"source": "public.t", "slot": self.slot, "publication": self.slot, **settings}
        chosen.setdefault("dsn", Dsn.of(self.dsn))
        return PostgresFollower(
            lake=self.lake,
            name="db.t",
            settings=CdcSettings(**chosen),
            on_progress=self.told.append,
        )

    def drain(self, **settings):
        """Take over what is committed, and give the table."""
        self.follower(**settings).drain()
        return self.table

    @property
    def table(self):
        return self.lake.load_table("db.t")

    def both(self, columns="*"):
        """The rows of both sides, as text in one order."""
        ours = self.table.to_df().selectExpr(columns).collect()
        theirs = self.run(f"select {columns} from t")
        return sorted(map(repr, map(tuple, ours))), sorted(map(repr, map(tuple, theirs)))

    def close(self):
        """Drop the slots, which the server has few of."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots "
                "where database = current_database() and not active"
            )


@pytest.fixture
def database_of(spark, tmp_path, request):
    """Makes a database of a server, and a lake beside it."""
    lake = frazil.connect(spark, warehouse=str(tmp_path / "lake"))
    lake.create_namespace("db")
    yield lambda server: Database(server, f"t{abs(hash(request.node.nodeid)) % 10**12}", lake)
    lake.close()


@pytest.fixture
def database(logical, database_of):
    made = database_of(logical)
    yield made
    made.close()
