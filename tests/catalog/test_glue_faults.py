"""A Glue that refuses, throttles, gives no answer or late ones, and writers that race."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from catalog_cases import QUICK_CHECKS, made_table, new_metadata, opened, set_properties

from frazil.catalog.pointer.glue import GlueCatalog
from frazil.errors import (
    AccessDeniedError,
    CommitFailedError,
    CommitStateUnknownError,
    FrazilError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    ValidationError,
)
from frazil.storage.files import local_path
from glue_server import Fault, GlueServer

ONE_TRY = {"glue.max-retries": "0"}
SECRET = "made-up-secret-of-tests"
GONE = Fault("GetTable", times=1000)


@pytest.fixture
def properties(glue: GlueServer, tmp_path: Path) -> dict[str, str]:
    return {**glue.emptied((tmp_path / "wh").as_uri()), **QUICK_CHECKS}


@pytest.fixture
def catalog(properties: dict[str, str], glue: GlueServer) -> Iterator[GlueCatalog]:
    with closing(opened({**properties, **ONE_TRY})) as made:
        assert isinstance(made, GlueCatalog)
        yield made
        glue.rules.faults.clear()


@pytest.fixture
def trying(
    properties: dict[str, str], glue: GlueServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[GlueCatalog, list[float]]]:
    """A catalog that tries three times more, and its pauses, which take no time."""
    pauses: list[float] = []
    # Threads of others sleep in this process too.
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=pauses.append))
    with closing(opened({**properties, "glue.max-retries": "3"})) as made:
        assert isinstance(made, GlueCatalog)
        yield made, pauses
        glue.rules.faults.clear()


def files(catalog: GlueCatalog) -> list[str]:
    folder = local_path(catalog.default_table_location("db.t"))
    return sorted(each.name for each in Path(folder or "", "metadata").glob("*.json"))


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        ("AccessDeniedException", AccessDeniedError, "does not permit it: no user of yours"),
        ("UnrecognizedClientException", AccessDeniedError, "does not accept the keys"),
        ("ExpiredTokenException", AccessDeniedError, "ExpiredTokenException"),
        ("InvalidInputException", ValidationError, "no user of yours"),
        ("ConcurrentModificationException", CommitFailedError, "another writer was first"),
        ("EntityNotFoundException", NoSuchTableError, "dropped or renamed"),
        ("ResourceNumberLimitExceededException", StorageError, "ResourceNumberLimit"),
        ("ThrottlingException", StorageError, "throttles calls after 0 more tries"),
    ],
)
def test_what_the_service_refuses_is_typed_and_leaves_nothing(
    glue: GlueServer, catalog: GlueCatalog, code: str, error: type[FrazilError], said: str
) -> None:
    table = made_table(catalog)
    before = files(catalog)
    message = f"no user of yours, x-amz-security-token:{SECRET}"
    glue.rules.faults.append(Fault("UpdateTable", code, 400, message=message))
    with pytest.raises(error, match=said) as caught:
        set_properties(catalog, "db.t", a="1")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert catalog.load_table("db.t") == table
    assert files(catalog) == before


def test_a_reader_is_refused(glue: GlueServer, catalog: GlueCatalog) -> None:
    made_table(catalog)
    glue.rules.faults.append(Fault("GetTable", "AccessDeniedException", 400))
    with pytest.raises(AccessDeniedError):
        catalog.load_table("db.t")
    glue.rules.faults.append(Fault("GetTable", "InternalServiceException", 500))
    with pytest.raises(StorageError, match="gave no answer"):
        catalog.table_exists("db.t")


@pytest.mark.parametrize("code", ["ThrottlingException", "ProvisionedThroughputExceededException"])
def test_what_is_throttled_is_tried_again(
    glue: GlueServer, trying: tuple[GlueCatalog, list[float]], code: str
) -> None:
    catalog, pauses = trying
    made_table(catalog)
    glue.rules.faults.append(Fault("UpdateTable", code, 400, times=3))
    assert set_properties(catalog, "db.t", a="1") == catalog.load_table("db.t")
    # Random, up to a second, then two, then four.
    assert [pause <= 2**number for number, pause in enumerate(pauses)] == [True] * 3
    assert len(set(pauses)) == 3
    before = files(catalog)
    glue.rules.faults.append(Fault("UpdateTable", code, 400, times=4))
    with pytest.raises(StorageError, match="after 3 more tries"):
        set_properties(catalog, "db.t", b="1")
    assert files(catalog) == before
    assert not glue.rules.faults


def test_a_throttled_try_before_makes_a_refusal_no_less_certain(
    glue: GlueServer, trying: tuple[GlueCatalog, list[float]]
) -> None:
    catalog, _ = trying
    made_table(catalog)
    glue.rules.faults += [
        Fault("UpdateTable", "ThrottlingException", 400),
        Fault("UpdateTable", "AccessDeniedException", 400),
    ]
    glue.rules.calls.clear()
    with pytest.raises(AccessDeniedError):
        set_properties(catalog, "db.t", a="1")
    assert glue.operations() == ["GetTable", "GetTable", "UpdateTable", "UpdateTable"]


# -- lost answers of commits -------------------------------------------------------------------


def test_a_try_that_was_carried_out_is_not_a_lost_race(
    glue: GlueServer, trying: tuple[GlueCatalog, list[float]]
) -> None:
    catalog, _ = trying
    made_table(catalog)
    glue.rules.faults.append(Fault("UpdateTable", carried_out=True))
    changed = set_properties(catalog, "db.t", a="1")
    assert glue.operations()[-3:] == ["UpdateTable", "UpdateTable", "GetTable"]
    assert catalog.load_table("db.t") == changed


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("other_commits", [True, False])
def test_a_lost_answer_is_settled_by_asking(
    glue: GlueServer,
    catalog: GlueCatalog,
    properties: dict[str, str],
    carried_out: bool,
    other_commits: bool,
) -> None:
    made_table(catalog)
    others = opened(properties)
    asking = iter([True])

    def asked(name: tuple[str, ...], base: str) -> Any:
        if other_commits and next(asking, False):
            set_properties(others, "db.t", b="2")
        return real(name, base)

    real, catalog._tables.settled_table = catalog._tables.settled_table, asked  # type: ignore[method-assign]
    glue.rules.faults.append(Fault("UpdateTable", carried_out=carried_out))
    if carried_out:
        set_properties(catalog, "db.t", a="1")
    else:
        before = files(catalog)
        with pytest.raises(CommitFailedError, match="did not take place"):
            set_properties(catalog, "db.t", a="1")
        assert len(files(catalog)) == len(before) + other_commits
    found = catalog.load_table("db.t").metadata.properties
    assert {"a": "a" in found, "b": "b" in found} == {"a": carried_out, "b": other_commits}


def test_a_call_that_comes_late_changes_nothing(glue: GlueServer, catalog: GlueCatalog) -> None:
    table = made_table(catalog)
    glue.rules.faults.append(Fault("UpdateTable"))
    with pytest.raises(CommitFailedError):
        set_properties(catalog, "db.t", a="1")
    late = next(
        arguments for operation, arguments in glue.rules.calls if operation == "UpdateTable"
    )
    with pytest.raises(ClientError, match="ConcurrentModification"):
        glue.client.update_table(**late)
    assert catalog.load_table("db.t") == table


def test_no_answer_can_be_had(glue: GlueServer, catalog: GlueCatalog) -> None:
    made_table(catalog, **QUICK_CHECKS)
    before = files(catalog)
    lost = Fault("UpdateTable", carried_out=True, then=lambda: glue.rules.faults.append(GONE))
    glue.rules.faults.append(lost)
    with pytest.raises(CommitStateUnknownError, match="no file was deleted"):
        set_properties(catalog, "db.t", a="1")
    glue.rules.faults.clear()
    assert len(files(catalog)) == len(before) + 1
    assert catalog.load_table("db.t").metadata.properties["a"] == "1"


def test_a_silent_service_is_not_waited_for(glue: GlueServer, properties: dict[str, str]) -> None:
    limits = {"http-client.apache.socket-timeout-ms": "300", **ONE_TRY}
    with closing(opened({**properties, **limits})) as catalog:
        table = made_table(catalog, **{"commit.status-check.min-wait-ms": "300"})
        glue.rules.faults.append(Fault("UpdateTable", seconds=0.5))
        with pytest.raises(CommitFailedError, match="ReadTimeoutError"):
            set_properties(catalog, "db.t", a="1")
        assert catalog.load_table("db.t") == table


# -- lost answers of other changes -------------------------------------------------------------


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_lost_answer_when_a_table_is_made(
    glue: GlueServer, catalog: GlueCatalog, carried_out: bool
) -> None:
    catalog.create_namespace("db")
    glue.rules.faults.append(Fault("CreateTable", carried_out=carried_out))
    made = catalog.create_table("db.t", new_metadata(catalog, "db.t"))
    assert catalog.load_table("db.t") == made
    assert glue.operations().count("CreateTable") == (1 if carried_out else 2)
    assert len(files(catalog)) == 1


def test_of_two_creators_without_an_answer_the_first_wins(
    glue: GlueServer, catalog: GlueCatalog, properties: dict[str, str]
) -> None:
    catalog.create_namespace("db")
    others = opened(properties)
    metadata = new_metadata(catalog, "db.t")
    first = [new_metadata(catalog, "db.t")]
    glue.rules.faults.append(Fault("CreateTable"))
    real = catalog._tables.find

    def found(name: tuple[str, ...]) -> Any:
        if glue.operations()[-1] == "CreateTable" and first:
            others.create_table("db.t", first.pop())
        return real(name)

    catalog._tables.find = found  # type: ignore[method-assign]
    with pytest.raises(CommitFailedError, match="did not take place"):
        catalog.create_table("db.t", metadata)
    assert len(files(catalog)) == 1
    assert catalog.load_table("db.t").metadata.table_uuid != metadata.table_uuid


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_lost_answer_when_a_table_is_dropped(
    glue: GlueServer, catalog: GlueCatalog, carried_out: bool
) -> None:
    made_table(catalog)
    glue.rules.faults.append(Fault("DeleteTable", carried_out=carried_out))
    if carried_out:
        catalog.drop_table("db.t")
    else:
        with pytest.raises(CommitFailedError, match="the end of the table"):
            catalog.drop_table("db.t")
    assert catalog.table_exists("db.t") is not carried_out


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("operation", ["CreateDatabase", "UpdateDatabase", "DeleteDatabase"])
def test_a_lost_answer_when_a_namespace_changes(
    glue: GlueServer, catalog: GlueCatalog, operation: str, carried_out: bool
) -> None:
    run: dict[str, Callable[[], None]] = {
        "CreateDatabase": lambda: catalog.create_namespace("new", {"a": "1"}),
        "UpdateDatabase": lambda: catalog.update_namespace_properties("db", updates={"a": "1"}),
        "DeleteDatabase": lambda: catalog.drop_namespace("db"),
    }
    catalog.create_namespace("db")
    glue.rules.faults.append(Fault(operation, carried_out=carried_out))
    if carried_out:
        run[operation]()
    else:
        with pytest.raises((CommitFailedError, CommitStateUnknownError)):
            run[operation]()
    done = {
        "CreateDatabase": lambda: catalog.namespace_exists("new"),
        "UpdateDatabase": lambda: catalog.load_namespace_properties("db") == {"a": "1"},
        "DeleteDatabase": lambda: not catalog.namespace_exists("db"),
    }
    assert done[operation]() is carried_out


# -- renames -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("faults", "error", "left"),
    [
        ([Fault("CreateTable", carried_out=True)], None, "u"),
        ([Fault("CreateTable")], None, "u"),
        ([Fault("DeleteTable", carried_out=True)], None, "u"),
        ([Fault("DeleteTable")], CommitFailedError, "t"),
        ([Fault("DeleteTable", "AccessDeniedException", 400)], AccessDeniedError, "t"),
        ([Fault("DeleteTable", "AccessDeniedException", 400, times=2)], AccessDeniedError, "tu"),
    ],
)
def test_renames_are_whole_or_undone(
    glue: GlueServer,
    catalog: GlueCatalog,
    faults: list[Fault],
    error: type[FrazilError] | None,
    left: str,
) -> None:
    table = made_table(catalog)
    glue.rules.faults += [Fault(**vars(each)) for each in faults]
    if error is None:
        catalog.rename_table("db.t", "db.u")
    else:
        with pytest.raises(error, match=r"db\.t and db\.u are one table" if left == "tu" else None):
            catalog.rename_table("db.t", "db.u")
    assert catalog.list_tables("db") == [("db", each) for each in left]
    assert catalog.load_table(f"db.{left[0]}").metadata == table.metadata


def test_a_rename_gives_way_to_a_commit(
    glue: GlueServer, catalog: GlueCatalog, properties: dict[str, str]
) -> None:
    made_table(catalog)
    others = opened(properties)
    real = catalog._tables.insert

    def insert(*given: Any, **options: Any) -> None:
        real(*given, **options)
        set_properties(others, "db.t", a="1")

    catalog._tables.insert = insert  # type: ignore[method-assign]
    with pytest.raises(CommitFailedError, match="another writer was first"):
        catalog.rename_table("db.t", "db.u")
    assert catalog.list_tables("db") == [("db", "t")]
    assert catalog.load_table("db.t").metadata.properties["a"] == "1"


def test_a_rename_takes_no_name(glue: GlueServer, catalog: GlueCatalog) -> None:
    made_table(catalog)
    glue.client.create_table(DatabaseName="db", TableInput={"Name": "u"})
    with pytest.raises(TableAlreadyExistsError, match="another format"):
        catalog.rename_table("db.t", "db.u")
    assert catalog.table_exists("db.t")


# -- races and secrets -------------------------------------------------------------------------


def test_no_secret_is_shown(properties: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="frazil")
    with closing(opened(properties)) as catalog:
        made_table(catalog)
        assert isinstance(catalog, GlueCatalog)
        settings = catalog._connection.settings
        for shown in (repr(catalog), repr(settings), repr(settings.keys)):
            assert not re.search(f"{SECRET}|AKIAMADEUP", shown), shown
    assert SECRET not in caplog.text
