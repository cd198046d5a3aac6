"""Many writers, writers killed at every step, and catalogs whose answer is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from catalog_cases import (
    BEHIND_A_SERVER,
    KINDS,
    QUICK_CHECKS,
    made_table,
    new_metadata,
    opened,
    place_of,
    properties_of,
    set_properties,
)
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from view_cases import made_view, replaced, sql_of

from ci_share import one_of_each
from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.pointer.sql.rows import Pointers
from frazil.catalog.protocol import Catalog, TableCommit
from frazil.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    FrazilError,
    StorageError,
    TableAlreadyExistsError,
)
from frazil.format.changes import SetProperties
from frazil.storage.files import local_path
from programs import run_program

WORKER = Path(__file__).with_name("catalog_worker.py")


def metadata_files(catalog: Catalog) -> set[Path]:
    return set(Path(local_path(place_of(catalog)) or "").parent.rglob("*.metadata.json"))


@pytest.mark.parametrize("kind", [*KINDS, *BEHIND_A_SERVER, "glue"])
def test_no_acknowledged_commit_is_lost(properties: dict[str, str]) -> None:
    writers, commits = 4, 4 if properties["type"] == "glue" else 10
    catalog = opened(properties)
    made_table(catalog, **{"write.metadata.previous-versions-max": "1000"})
    acknowledged = run_program(WORKER, properties, writers, commits).split()
    table = catalog.load_table("db.t")
    done = {name for name, value in table.metadata.properties.items() if value == "done"}
    assert done == set(acknowledged)
    assert len(acknowledged) == writers * commits
    assert len(table.metadata.metadata_log) == writers * commits
    assert len(metadata_files(catalog)) == writers * commits + 1


class Broken(Exception):
    """A failure of the driver."""


def break_commit(catalog: SqlCatalog, *, committed: bool) -> None:
    """Let the next COMMIT end without an answer, whether it takes place or not."""
    dialect = catalog._database.engine.dialect
    real = dialect.do_commit

    def do_commit(connection: Any) -> None:
        dialect.do_commit = real  # type: ignore[method-assign]
        if committed:
            real(connection)
        raise catalog._database.engine.dialect.dbapi.OperationalError(  # type: ignore[union-attr]
            "server closed the connection unexpectedly; password=s3cr3t-pw"
        )

    dialect.do_commit = do_commit  # type: ignore[method-assign]


@contextlib.contextmanager
def silent(catalog: SqlCatalog) -> Iterator[None]:
    """Every statement after the next COMMIT fails in the block."""
    engine = catalog._database.engine
    commits: list[object] = []

    def refuse(*_: Any) -> None:
        if commits:
            raise OperationalError("SELECT", {}, Broken("no route to password=s3cr3t-pw"))

    event.listen(engine, "commit", commits.append)
    event.listen(engine, "before_cursor_execute", refuse)
    yield
    event.remove(engine, "before_cursor_execute", refuse)


def test_a_lost_answer_while_others_commit(sql: SqlCatalog) -> None:
    made_table(sql, **QUICK_CHECKS)
    other = opened(sql.properties)
    break_commit(sql, committed=True)
    real = sql._rows.settled_pointers

    def later(name: tuple[str, ...], *, is_new: bool) -> Pointers | None:
        set_properties(other, "db.t", b="2")
        return real(name, is_new=is_new)

    sql._rows.settled_pointers = later  # type: ignore[method-assign]
    set_properties(sql, "db.t", a="1")
    assert other.load_table("db.t").metadata.properties.items() >= {"a": "1", "b": "2"}.items()


NO_RETRIES = {"commit.status-check.num-retries": "0"}
CHANGES: dict[str, tuple[Callable[[Catalog], Any], Callable[[Catalog], bool]]] = {
    "commit": (
        lambda c: set_properties(c, "db.t", a="1"),
        lambda c: "a" in c.load_table("db.t").metadata.properties,
    ),
    "several": (
        lambda c: c.commit_tables([TableCommit(("db", "t"), (), (SetProperties({"a": "1"}),))]),
        lambda c: "a" in c.load_table("db.t").metadata.properties,
    ),
    "create": (
        lambda c: c.create_table("db.n", new_metadata(c, "db.n", **NO_RETRIES)),
        lambda c: c.table_exists("db.n"),
    ),
    "rename": (lambda c: c.rename_table("db.t", "db.r"), lambda c: c.table_exists("db.r")),
    "drop": (lambda c: c.drop_table("db.t"), lambda c: not c.table_exists("db.t")),
    "namespace": (lambda c: c.create_namespace("new"), lambda c: c.namespace_exists("new")),
    "view": (lambda c: made_view(c, "db.n"), lambda c: c.view_exists("db.n")),
    "replaced view": (
        lambda c: replaced(c, "SELECT 2 AS a"),
        lambda c: sql_of(c.load_view("db.v")) == "SELECT 2 AS a",
    ),
    "renamed view": (lambda c: c.rename_view("db.v", "db.r"), lambda c: c.view_exists("db.r")),
    "dropped view": (lambda c: c.drop_view("db.v"), lambda c: not c.view_exists("db.v")),
}


@pytest.mark.parametrize(
    ("kind", "change", "committed"),
    one_of_each(["sqlite", "postgres"], CHANGES, [True, False], test=5),
)
def test_a_lost_answer_is_looked_for_once_where_nobody_wants_it_again(
    properties: dict[str, str], change: str, committed: bool
) -> None:
    """No retries are one look, which finds the change; none at all would call it unknown."""
    catalog = opened({**properties, **NO_RETRIES})
    assert isinstance(catalog, SqlCatalog)
    made_table(catalog, **NO_RETRIES)
    made_view(catalog, **NO_RETRIES)
    files = metadata_files(catalog)
    act, is_done = CHANGES[change]
    break_commit(catalog, committed=committed)
    if committed:
        act(catalog)
    else:
        with pytest.raises(CommitFailedError) as caught:
            act(catalog)
        assert "s3cr3t" not in str(caught.value)
        assert metadata_files(catalog) == files
    assert is_done(opened(catalog.properties)) is committed


@pytest.mark.parametrize("change", ["commit", "several", "replaced view"])
def test_no_answer_can_be_had(sql: SqlCatalog, change: str) -> None:
    made_table(sql, **QUICK_CHECKS)
    made_view(sql, **QUICK_CHECKS)
    files = metadata_files(sql)
    act, is_done = CHANGES[change]
    break_commit(sql, committed=True)
    with silent(sql), pytest.raises(CommitStateUnknownError, match="no file was") as caught:
        act(sql)
    assert "s3cr3t" not in str(caught.value)
    assert len(metadata_files(sql)) == len(files) + 1
    assert is_done(sql)


def test_a_failing_statement_leaves_no_file(sql: SqlCatalog) -> None:
    table = made_table(sql)
    files = metadata_files(sql)

    @event.listens_for(sql._database.engine, "before_cursor_execute")
    def refuse(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE"):
            raise OperationalError("UPDATE", {}, Broken("disk on fire"))

    with pytest.raises(StorageError, match="disk on fire"):
        set_properties(sql, "db.t", a="1")
    event.remove(sql._database.engine, "before_cursor_execute", refuse)
    assert metadata_files(sql) == files
    assert sql.load_table("db.t") == table


def test_the_server_goes_away(postgres: Any, tmp_path: Path) -> None:
    url = postgres.new_database("away")
    catalog = opened(properties_of("postgres", tmp_path, url))
    made_table(catalog)
    postgres.stop()
    try:
        with pytest.raises(StorageError) as caught:
            catalog.load_table("db.t")
        assert "s3cr3t" not in str(caught.value)
        with pytest.raises(StorageError) as caught:
            opened(properties_of("postgres", tmp_path, url))
        assert "s3cr3t" not in str(caught.value)
    finally:
        postgres.start()
    assert set_properties(catalog, "db.t", a="1") == catalog.load_table("db.t")


@pytest.mark.parametrize("hint", [b"1", b"", b"99", b"\xff\xfe", b"v3", b"9" * 3000, None])
def test_any_hint_is_survived(tmp_path: Path, hint: bytes | None) -> None:
    catalog = opened(properties_of("filesystem", tmp_path))
    made_table(catalog)
    for number in range(3):
        set_properties(catalog, "db.t", n=str(number))
    path = tmp_path / "wh" / "db" / "t" / "metadata" / "version-hint.text"
    assert path.read_text() == "4"
    path.unlink()
    if hint is not None:
        path.write_bytes(hint)
    table = catalog.load_table("db.t")
    assert table.metadata.properties["n"] == "2"
    assert table.metadata_location.endswith("/v4.metadata.json")
    set_properties(catalog, "db.t", n="3")
    assert path.read_text() == "5"


_NO_LOCATION = r"the row of the table db\.t .*no metadata location"
ROWS: list[tuple[Any, str]] = [
    (None, _NO_LOCATION),
    ("", _NO_LOCATION),
    (b"\x00\xff", _NO_LOCATION),
    (5, r"."),
    ("file:///nowhere/x.metadata.json", r"."),
    ("nosuch://x/y", r"."),
    ("/etc/hostname", r"."),
    ("\x00", r"."),
    ("relative", r"."),
]


@pytest.mark.parametrize(("location", "said"), ROWS, ids=range(len(ROWS)))
def test_broken_rows_are_typed(tmp_path: Path, location: Any, said: str) -> None:
    catalog = opened(properties_of("sqlite", tmp_path))
    assert isinstance(catalog, SqlCatalog)
    catalog.create_namespace("db")
    with catalog._database.engine.begin() as connection:
        for namespace in ("db", "", "a..b", b"\x00", ".", "x" * 1000):
            connection.exec_driver_sql(
                "INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, NULL, 'TABLE')",
                ("lake", namespace, "t", location),
            )
    with pytest.raises(FrazilError, match=said):
        catalog.load_table("db.t")
    with pytest.raises(FrazilError):
        set_properties(catalog, "db.t", a="1")
    with pytest.raises(TableAlreadyExistsError):
        catalog._create(("db", "t"), new_metadata(catalog, "db.t"))
    assert catalog.list_tables("db") == [("db", "t")]
    assert ("db",) in catalog.list_namespaces()
    catalog.drop_table("db.t")
    assert catalog.list_tables("db") == []
