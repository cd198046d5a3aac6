"""Commits: requirements and updates of one table or of several."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Capability, Catalog, LoadedTable, TableCommit
from frazil.errors import CommitFailedError, NoSuchTableError, OutdatedUpdateError
from frazil.format.changes import (
    AddSchema,
    AddSnapshot,
    AssertCreate,
    SetLocation,
    SetProperties,
    Update,
    check_requirements,
    requirement_from_json,
    update_from_json,
)
from frazil.format.json_fields import JsonObject
from frazil.serve.answers import NOTHING, HttpAnswer, bad_request
from frazil.serve.calls import Call, identifier_of, reading_request
from frazil.serve.rights.named_files import require_named_files
from frazil.serve.service import ServedCatalog
from frazil.serve.tables import loaded_answer

T = TypeVar("T")

_TRIES: Final = 20
_LONGEST_PAUSE_SECONDS: Final = 0.2


def commit_table(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Commit to a table, or make one that was staged."""
    body = call.body()
    if "identifier" in body and identifier_of(body, "identifier") != call.table:
        raise bad_request("the body names another table than the path")
    commit = _commit_of(body, call.table)
    catalog = _catalog_for(served, call, [commit])

    def commit_once() -> LoadedTable:
        return catalog.commit_table(commit.identifier, commit.requirements, commit.updates)

    table = commit_again(commit_once, lambda: _check(catalog, [commit]))
    _note_places(served, [commit])
    return loaded_answer(served, call.principal, table)


def commit_transaction(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Commit to several tables, all or none."""
    with call.reading_body() as body:
        changes = body.objects("table-changes")
    commits = [_commit_of(change, identifier_of(change, "identifier")) for change in changes]
    for commit in commits:
        served.require_write(call.principal, commit.identifier[:-1])
    if len({commit.identifier for commit in commits}) < len(commits):
        raise bad_request("a table is named twice")
    if not served.catalog.can(Capability.MULTI_TABLE_COMMITS):
        raise served.catalog.unsupported(Capability.MULTI_TABLE_COMMITS)
    if not commits:
        return NOTHING
    catalog = _catalog_for(served, call, commits)
    commit_again(lambda: catalog.commit_tables(commits), lambda: _check(catalog, commits))
    _note_places(served, commits)
    return NOTHING


def _commit_of(body: JsonObject, table: Identifier) -> TableCommit:
    with reading_request():
        requirements = tuple(requirement_from_json(each) for each in body.array("requirements"))
        updates = tuple(_update_of(each) for each in body.array("updates"))
    return TableCommit(table, requirements, updates)


def _update_of(value: Any) -> Update:
    """An update of a body.

    Java sends the highest id of a schema as the table's last one, also where the table has given
    out higher ids; the field is deprecated, and without it the table's own counts.
    """
    update = update_from_json(value)
    if isinstance(update, AddSchema):
        last = update.last_column_id
        if last is not None and last <= update.schema.highest_field_id:
            return AddSchema(update.schema)
    return update


def _catalog_for(served: ServedCatalog, call: Call, commits: Sequence[TableCommit]) -> Catalog:
    """The catalog as the client may change these tables, once all that it names is looked at."""
    if call.principal.writes_everything:
        places = served.places_to_write(call.principal)
        for commit in commits:
            places.require_updates(commit.updates)
        return served.catalog
    tables: dict[Identifier, LoadedTable] = {}
    for commit in commits:
        with contextlib.suppress(NoSuchTableError):
            tables[commit.identifier] = served.catalog.load_table(commit.identifier)
    places = served.places_to_write(call.principal, *tables.values())
    catalog = served.catalog_for(call.principal, *tables.values())
    for commit in commits:
        places.require_updates(commit.updates)
        new = [each.snapshot for each in commit.updates if isinstance(each, AddSnapshot)]
        if new:
            table = tables.get(commit.identifier)
            metadata = None if table is None else table.metadata
            with reading_request():
                require_named_files(catalog.io, places, new, of=metadata)
    return catalog


def _note_places(served: ServedCatalog, commits: Sequence[TableCommit]) -> None:
    """Look anew at where tables lie after one may have got another place."""
    if any(isinstance(each, SetLocation | SetProperties) for c in commits for each in c.updates):
        served.owners.forget()


def commit_again(once: Callable[[], T], check: Callable[[], None]) -> T:
    """Commit again while another writer was first and the requirements hold all the same.

    Args:
        once: commits.
        check: raises if the requirements do not hold any more.

    Raises:
        CommitFailedError: a requirement does not hold, or every try lost its race.
        OutdatedUpdateError: the updates contradict what the other writer did.
    """
    for attempt in range(1, _TRIES + 1):
        try:
            return once()
        except OutdatedUpdateError:
            raise
        except CommitFailedError:
            if attempt == _TRIES:
                raise
            check()
        longest = _LONGEST_PAUSE_SECONDS * attempt / _TRIES
        time.sleep(random.uniform(0, longest))  # noqa: S311
    raise AssertionError(_TRIES)


def _check(catalog: Catalog, commits: Sequence[TableCommit]) -> None:
    """Check the requirements of commits against the tables as they are now."""
    for commit in commits:
        try:
            metadata = catalog.load_table(commit.identifier).metadata
        except NoSuchTableError:
            if not any(isinstance(each, AssertCreate) for each in commit.requirements):
                raise
            continue
        check_requirements(metadata, commit.requirements)
