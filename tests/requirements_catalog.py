"""A catalog as a REST server is: it checks the stated requirements, and nothing else.

Where the table was when the updates were made is no matter to it. Requirements and updates pass
through their JSON, so that it knows only what the protocol can say.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.protocol import LoadedTable, StagedTable, TableCommit
from frazil.errors import CommitFailedError
from frazil.format.changes import (
    AssertCreate,
    Requirement,
    Update,
    requirement_from_json,
    update_from_json,
)
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import creation_updates


class RequirementsCatalog(SqlCatalog):
    """Applies updates to the table as it is, if the stated requirements hold of it."""

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        """Stage a table whose making is a list of updates."""
        staged = super().stage_table(identifier, metadata)
        return replace(staged, updates=creation_updates(metadata))

    def create_staged_table(self, staged: StagedTable) -> LoadedTable:
        """Make it of its updates."""
        super().stage_table(staged.identifier, staged.metadata)
        return self.commit_table(staged.identifier, [AssertCreate()], staged.updates)

    def commit_table(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
        *,
        base: LoadedTable | None = None,
    ) -> LoadedTable:
        """Commit, again on the newest table while others are first."""
        wanted = [requirement_from_json(through_json(each)) for each in requirements]
        changes = [update_from_json(through_json(each)) for each in updates]
        while True:
            try:
                return super().commit_table(identifier, wanted, changes)
            except _OvertakenError:
                continue

    def commit_tables(self, commits: Sequence[TableCommit]) -> None:
        """Commit all, again on the newest tables while others are first."""
        wanted = [
            TableCommit(
                each.identifier,
                tuple(requirement_from_json(through_json(one)) for one in each.requirements),
                tuple(update_from_json(through_json(one)) for one in each.updates),
            )
            for each in commits
        ]
        while True:
            try:
                super().commit_tables(wanted)
            except _OvertakenError:
                continue
            return

    def _raise_lost_race(self, connection: Connection, base: LoadedTable) -> None:
        try:
            super()._raise_lost_race(connection, base)
        except CommitFailedError as error:
            raise _OvertakenError(str(error)) from error


class _OvertakenError(CommitFailedError):
    """Another writer was first: the server looks again."""


def through_json(value: Requirement | Update) -> object:
    """What arrives of a requirement or an update."""
    return json.loads(json.dumps(value.to_json()))
