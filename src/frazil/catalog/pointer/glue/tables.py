"""Tables of a Glue catalog: found, listed, made, moved to another metadata file, and renamed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.outcome import Sending
from frazil.catalog.pointer.glue.connection import (
    ALREADY_EXISTS,
    CHANGED_MEANWHILE,
    NOT_FOUND,
    GlueConnection,
    NoAnswerError,
    RefusalError,
)
from frazil.catalog.pointer.glue.entries import METADATA_LOCATION, GlueTable
from frazil.catalog.pointer.glue.names import GlueNames
from frazil.errors import (
    CommitFailedError,
    FrazilError,
    InvalidMetadataError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
)


class GlueTables:
    """The tables of one catalog.

    Args:
        connection: to the service.
        names: which names there can be.
        status_checks: say how long to ask after a lost answer.
    """

    def __init__(
        self, connection: GlueConnection, names: GlueNames, *, status_checks: Mapping[str, str]
    ) -> None:
        self._glue = connection
        self._names = names
        self._status_checks = status_checks

    # -- looks -----------------------------------------------------------------------------------

    def find(self, name: Identifier) -> GlueTable | None:
        """Return the table of a name, of whatever format; None if there is none."""
        if self._names.fault_of_table(name) is not None:
            return None
        answer = self._glue.find("get_table", **_place(name))
        return None if answer is None else GlueTable(answer["Table"])

    def find_iceberg(self, name: Identifier) -> GlueTable | None:
        """Return the Iceberg table of a name; None if there is none."""
        found = self.find(name)
        return found if found is not None and found.is_iceberg else None

    def names_in(self, namespace: Identifier) -> list[Identifier]:
        """Return the names of the Iceberg tables of a namespace, sorted."""
        found = []
        for entry in self._glue.pages("get_tables", "TableList", DatabaseName=namespace[0]):
            if entry is None:
                raise self.no_namespace(namespace)
            if GlueTable(entry).is_iceberg:
                found.append((namespace[0], str(entry["Name"])))
        return sorted(found)

    def pointer_of(self, name: Identifier, table: GlueTable) -> str:
        """Return a table's metadata file; InvalidMetadataError where Glue knows none."""
        if table.pointer is None:
            raise InvalidMetadataError(
                f"the table {shown(name)} in the catalog {self._glue.name} has no parameter "
                f"{METADATA_LOCATION} in Glue: it is half made, or was changed by hand",
                field=METADATA_LOCATION,
            )
        return table.pointer

    def settled_table(self, name: Identifier, base: str) -> GlueTable | None:
        """Return a table after which no late call can move the pointer from its base any more.

        A call that was sent for the version at hand is refused once there is a newer one.
        """
        while True:
            table = self.find_iceberg(name)
            if table is None or table.pointer != base:
                return table
            with contextlib.suppress(RefusalError):
                self._call("update_table", **self._update(name, table, table.as_input()))
                return table

    # -- changes ---------------------------------------------------------------------------------

    def insert(
        self,
        name: Identifier,
        table_input: Mapping[str, Any],
        *,
        took_place: Callable[[], bool | None],
        properties: Mapping[str, str],
        sending: Sending,
    ) -> None:
        """Make a table."""
        self._glue.change(
            f"the new table {shown(name)}",
            "create_table",
            {"DatabaseName": name[0], "TableInput": table_input},
            took_place=took_place,
            properties={**self._status_checks, **properties},
            refusals={
                ALREADY_EXISTS: self.taken_name_error(name),
                NOT_FOUND: self.no_namespace(name[:-1]),
                CHANGED_MEANWHILE: self._lost_race(name),
            },
            sending=sending,
        )

    def insert_again(self, name: Identifier, table_input: Mapping[str, Any]) -> bool | None:
        """Make a table whose first call had no answer; None where somebody was first meanwhile."""
        try:
            self._call("create_table", DatabaseName=name[0], TableInput=table_input)
        except RefusalError:
            return None
        return True

    def update(
        self,
        name: Identifier,
        table: GlueTable,
        table_input: Mapping[str, Any],
        *,
        took_place: Callable[[], bool | None],
        properties: Mapping[str, str],
        sending: Sending,
    ) -> None:
        """Change a table if it still is of the same version.

        Raises CommitFailedError: it is not; NoSuchTableError: it was dropped meanwhile.
        """
        self._glue.change(
            f"the swap of {shown(name)} to {table_input['Parameters'][METADATA_LOCATION]}",
            "update_table",
            self._update(name, table, table_input),
            took_place=took_place,
            properties={**self._status_checks, **properties},
            refusals={
                CHANGED_MEANWHILE: self._lost_race(name),
                NOT_FOUND: NoSuchTableError(f"the table {shown(name)} was dropped or renamed"),
            },
            sending=sending,
        )

    def delete(self, name: Identifier, table: GlueTable) -> None:
        """Remove a table from Glue; NoSuchTableError if it is gone."""

        def took_place() -> bool | None:
            found = self.find(name)
            if found is None:
                return True
            return False if found.pointer == table.pointer else None

        self._glue.change(
            f"the end of the table {shown(name)}",
            "delete_table",
            _place(name),
            took_place=took_place,
            properties=self._status_checks,
            refusals={
                NOT_FOUND: self.missing_error(name),
                CHANGED_MEANWHILE: self._lost_race(name),
            },
        )

    def rename(self, old: Identifier, table: GlueTable, new: Identifier) -> None:
        """Make the same table under another name, and remove the old one.

        Where the old one cannot be removed the new one goes again.
        Raises CommitFailedError: the table was changed meanwhile; it is as it was.
        """
        pointer = self.pointer_of(old, table)

        def was_made() -> bool | None:
            found = self.find(new)
            if found is None:
                return self.insert_again(new, copy)
            return found.pointer == pointer

        copy = {**table.as_input(), "Name": new[-1]}
        sending = Sending()
        self.insert(new, copy, took_place=was_made, properties={}, sending=sending)
        try:
            self._require_same(old, table)
            self.delete(old, table)
        except FrazilError as error:
            self._undo_rename(old, new, table, error)
            raise

    def _require_same(self, name: Identifier, table: GlueTable) -> None:
        found = self.find(name)
        if found is None:
            raise self.missing_error(name)
        if found.version != table.version:
            raise self._lost_race(name)

    def _undo_rename(
        self, old: Identifier, new: Identifier, table: GlueTable, reason: FrazilError
    ) -> None:
        """Remove the new name, unless the old one is gone."""
        try:
            if self.find(old) is not None:
                self.delete(new, table)
        except FrazilError as error:
            raise type(reason)(
                f"{reason}; {shown(old)} and {shown(new)} are one table now, since the new name "
                f"could not be removed ({error}): drop one of them, without purge"
            ) from None

    def _update(
        self, name: Identifier, table: GlueTable, table_input: Mapping[str, Any]
    ) -> dict[str, Any]:
        if table.version is None:
            raise UnsupportedError(
                f"the glue catalog {self._glue.name} tells no VersionId of {shown(name)}: without "
                f"it two writers could undo each other's commits"
            )
        return {
            "DatabaseName": name[0],
            "TableInput": table_input,
            "SkipArchive": self._glue.settings.skips_archive,
            "VersionId": table.version,
        }

    def _call(self, operation: str, **arguments: Any) -> None:
        try:
            self._glue.call(operation, **arguments)
        except NoAnswerError as error:
            raise CommitFailedError(f"no answer came: {error}") from None

    # -- errors ----------------------------------------------------------------------------------

    def missing_error(self, name: Identifier) -> NoSuchTableError:
        """Return the error of a name that is not there; it says of one that Glue cannot hold."""
        fault = self._names.fault_of_table(name)
        why = "" if fault is None else f": {fault}"
        return NoSuchTableError(
            f"there is no table {shown(name)} in the catalog {self._glue.name}{why}"
        )

    def of_other_format(self, name: Identifier, table: GlueTable) -> NoSuchTableError:
        """Return the error of a table that is not Iceberg's."""
        return NoSuchTableError(
            f"{shown(name)} in the catalog {self._glue.name} is no Iceberg table: its format in "
            f"Glue is {table.format_name}"
        )

    def taken_name_error(self, name: Identifier) -> TableAlreadyExistsError:
        """Return the error of a name that a table of any format has."""
        return TableAlreadyExistsError(
            f"the table {shown(name)} exists in {self._glue.name}, or a table of another format or "
            f"a view of that name"
        )

    def no_namespace(self, namespace: Identifier) -> NoSuchNamespaceError:
        """Return the error of a namespace that is not there."""
        fault = self._names.fault_of_namespace(namespace)
        return NoSuchNamespaceError(
            f"there is no namespace {shown(namespace)} in the catalog {self._glue.name}: "
            f"{fault or 'make it with create_namespace'}"
        )

    def _lost_race(self, name: Identifier) -> CommitFailedError:
        return CommitFailedError(
            f"{shown(name)} was changed in Glue meanwhile: another writer was first"
        )


def _place(name: Identifier) -> dict[str, str]:
    return {"DatabaseName": name[0], "Name": name[-1]}
