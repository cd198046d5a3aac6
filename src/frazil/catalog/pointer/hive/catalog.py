"""Tables and views in a Hive metastore: a commit alters the record under the metastore's lock.

Views are records of the type VIRTUAL_VIEW, as Java's HiveViewOperations has them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_table_identifier,
    require_folder_names,
    shown,
)
from frazil.catalog.metadata_files import view_metadata_file
from frazil.catalog.outcome import Sending, find_outcome, new_metadata_file
from frazil.catalog.pointer.hive.alters import Alter
from frazil.catalog.pointer.hive.changes import Change
from frazil.catalog.pointer.hive.connection import Metastores, thrift_types
from frazil.catalog.pointer.hive.locks import HeldLock, TableLocks
from frazil.catalog.pointer.hive.namespaces import HiveNamespaces
from frazil.catalog.pointer.hive.parameters import (
    METADATA_LOCATION,
    PREVIOUS_METADATA_LOCATION,
    lock_enabled,
)
from frazil.catalog.pointer.hive.records import (
    find_record,
    identity_of,
    is_table,
    is_view,
    new_record,
    new_view_record,
    pointer_of,
    require_external,
    set_table,
    set_view,
    view_pointer_of,
)
from frazil.catalog.pointer.hive.settings import (
    PROPERTY_NAMES,
    ConnectionSettings,
    LockTimes,
    TableForm,
)
from frazil.catalog.pointer.pointer_race import PointerRace, ViewRace
from frazil.catalog.pointer.record_catalog import RecordCatalog
from frazil.catalog.pointer.view_pointers import PointerViewMethods, require_pointer
from frazil.catalog.protocol import Capability, LoadedTable, StagedTable
from frazil.catalog.views import LoadedView
from frazil.errors import (
    CommitFailedError,
    FrazilError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ValidationError,
    ViewAlreadyExistsError,
)
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO

_ASKED_TOGETHER = 100


class HiveCatalog(PointerViewMethods, RecordCatalog[HiveNamespaces]):
    """A Hive metastore of 2.3 or later, shared with Java's HiveCatalog, PyIceberg and Hive.

    Properties: ``uri`` (``thrift://host:9083``, several with commas between), ``warehouse``,
    ``ugi``, ``hive.kerberos-authentication``, ``hive.hive2-compatible``, and Java's
    ``iceberg.engine.hive.*``, ``iceberg.hive.*`` and ``hive.metastore.client.*``.
    """

    kind: ClassVar[str] = "hive"
    capabilities: ClassVar[frozenset[Capability]] = RecordCatalog.capabilities | {
        Capability.NAMESPACE_PROPERTIES,
        Capability.RENAMES,
        Capability.TABLE_LOCATIONS,
        Capability.VIEWS,
    }
    property_names: ClassVar[frozenset[str] | None] = PROPERTY_NAMES

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        super().__init__(name, properties, io=io)
        self._form = TableForm.from_properties(properties)
        self._metastores = Metastores(name, ConnectionSettings.from_properties(name, properties))
        times = LockTimes.from_properties(properties)
        self._locks = TableLocks(self._metastores, times, self._form)
        self._namespaces = HiveNamespaces(
            self._metastores, name, warehouse=properties.get("warehouse"), form=self._form
        )

    # -- tables ----------------------------------------------------------------------------------

    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        return self._names(namespace, is_table)

    def metadata_location(self, identifier: str | Sequence[str]) -> str:
        name = parse_table_identifier(identifier)
        record = find_record(self._metastores, name)
        if record is None:
            raise self._no_table(name)
        return pointer_of(record, name)

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        staged = super().stage_table(identifier, metadata)
        if find_record(self._metastores, staged.identifier) is not None:
            raise self._taken_name_error(staged.identifier)
        return staged

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        old, new = parse_table_identifier(source), parse_table_identifier(target)
        self._require_namespace(new[:-1])
        table = self.load_table(old)
        if find_record(self._metastores, new) is not None:
            raise self._taken_name_error(new)
        with self._hold_lock(table) as lock:
            record = self._record_at(table)
            require_external(record, old)
            properties = table.metadata.properties
            try:
                self._send_rename(record, old, new, table.metadata_location, lock, properties)
            except ValidationError:
                # Hive answers in this way whatever it was that came between.
                if find_record(self._metastores, new) is not None:
                    raise self._taken_name_error(new) from None
                raise

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        name = parse_table_identifier(identifier)
        require_folder_names(name)
        database = self._namespaces.find(name[:-1])
        if database is not None and database.locationUri:
            return self._in_location(database.locationUri, name)
        return self._in_warehouse(name, f"{name[0]}.db", *name[1:])

    def close(self) -> None:
        self._metastores.close()

    def _find(self, name: Identifier) -> str | None:
        record = find_record(self._metastores, name)
        return pointer_of(record, name) if record is not None and is_table(record) else None

    def _insert(self, table: LoadedTable, sending: Sending) -> None:
        self._send_new_record(
            table.identifier,
            new_record(table, self._form),
            lambda: self._took_place(None, table),
            table.metadata.properties,
            self._taken_name_error,
            sending,
        )

    def _swap(self, base: LoadedTable, updated: TableMetadata) -> LoadedTable:
        name, table = base.identifier, self._successor(base, updated)
        with self._metadata_file(table) as sending:
            with self._hold_lock(base) as lock:
                record = self._record_at(base)
                set_table(record, base, table, self._form)
                try:
                    self._swap_change(base, table, record, lock, sending).carry_out(sending)
                except ValidationError:
                    # Hive refuses in the same way to alter what is not there.
                    if find_record(self._metastores, name) is None:
                        raise self._no_table(name) from None
                    raise
                # Held until now, the lock has kept all others away from the table.
                is_sure = lock is None or lock.is_held()
            if lock is not None and not is_sure:
                self._require_in_history(base, table, lock, sending)
        return table

    def _swap_change(
        self,
        base: LoadedTable,
        table: LoadedTable,
        record: Any,
        lock: HeldLock | None,
        sending: Sending,
    ) -> Change:
        name = base.identifier
        alter = Alter(self._metastores, name, record, base.metadata_location, lock, sending)
        return Change(
            f"the commit {table.metadata_location} of {shown(name)}",
            alter.send,
            alter.send_again,
            lambda: self._took_place(base, table),
            base.metadata.properties,
            # Without a lock it goes through at the base alone; with one it compares nothing.
            is_ruled_out=lambda: lock is None and self._find(name) != base.metadata_location,
        )

    def _require_in_history(
        self, base: LoadedTable, table: LoadedTable, lock: HeldLock, sending: Sending
    ) -> None:
        """Check a commit whose lock was lost: whoever had it then may have put another over it.

        The lock is taken anew for that, so that nobody else is in the middle of a commit.
        """
        change = f"the commit {table.metadata_location} of {shown(table.identifier)}"
        reason = f"the metastore's lock {lock.lock_id} was lost: {lock.failure}"

        def took_place() -> bool | None:
            with self._locks.hold(table.identifier):
                return self._took_place(base, table)

        if not find_outcome(took_place, base.metadata.properties, change=change, reason=reason):
            sending.refute()
            raise CommitFailedError(f"another writer has replaced {change}: {reason}")

    def _drop(self, name: Identifier) -> None:
        record = find_record(self._metastores, name)
        if record is None:
            raise self._no_table(name)
        pointer_of(record, name)
        try:
            self._send_drop(record, name, self.properties)
        except NoSuchTableError:
            raise self._no_table(name) from None

    # -- changes of records ----------------------------------------------------------------------

    def _send_rename(
        self,
        record: Any,
        old: Identifier,
        new: Identifier,
        location: str,
        lock: HeldLock | None,
        properties: Mapping[str, str],
    ) -> None:
        """Give the record of a table or view another name, if it still points to the location."""
        identity = identity_of(record)
        record.dbName, record.tableName = new
        sending = Sending()
        alter = Alter(self._metastores, old, record, location, lock, sending)
        Change(
            f"the rename of {shown(old)} to {shown(new)}",
            alter.send,
            alter.send_again,
            lambda: self._is_renamed(identity, old, new),
            properties,
        ).carry_out(sending)

    def _send_drop(self, record: Any, name: Identifier, properties: Mapping[str, str]) -> None:
        """Remove the record of a table or view."""
        identity, sending = identity_of(record), Sending()

        def send() -> None:
            self._metastores.change(
                lambda client: client.drop_table(name[0], name[1], False), sending
            )

        Change(
            f"the drop of {shown(name)}",
            send,
            send,
            lambda: not self._has_identity(name, identity),
            properties,
        ).carry_out(sending)

    def _send_new_record(
        self,
        name: Identifier,
        record: Any,
        took_place: Callable[[], bool | None],
        properties: Mapping[str, str],
        taken_name_error: Callable[[Identifier], FrazilError],
        sending: Sending,
    ) -> None:
        """Make the record of a table or view."""

        def send() -> None:
            self._metastores.change(lambda client: client.create_table(record), sending)

        try:
            Change(
                f"the creation of {shown(name)}",
                send,
                send,
                took_place,
                properties,
                is_ruled_out=lambda: find_record(self._metastores, name) is not None,
            ).carry_out(sending)
        except CommitFailedError:
            # A metastore may answer with what its database said of the second of two records.
            if find_record(self._metastores, name) is not None:
                raise taken_name_error(name) from None
            raise

    def _hold_lock(self, base: LoadedTable) -> contextlib.AbstractContextManager[HeldLock | None]:
        """Hold the lock for a change of a table as it was; who waits looks whether it still is."""
        if lock_enabled(base.metadata.properties, self._form):
            return self._locks.hold(base.identifier, lambda: self._record_at(base))
        return contextlib.nullcontext()

    def _record_at(self, base: LoadedTable) -> Any:
        """The record as it is, if it still points to the base."""
        record = find_record(self._metastores, base.identifier)
        if record is None:
            raise self._no_table(base.identifier)
        self._check_pointer(
            base.identifier, base.metadata_location, pointer_of(record, base.identifier)
        )
        return record

    def _took_place(self, base: LoadedTable | None, table: LoadedTable) -> bool | None:
        return PointerRace(base, table, lambda: self._find(table.identifier)).took_place(self.io)

    def _is_renamed(
        self, identity: tuple[Any, ...], old: Identifier, new: Identifier
    ) -> bool | None:
        if self._has_identity(new, identity):
            return True
        return False if self._has_identity(old, identity) else None

    def _has_identity(self, name: Identifier, identity: tuple[Any, ...]) -> bool:
        record = find_record(self._metastores, name)
        return record is not None and identity_of(record) == identity

    def _names(
        self, namespace: str | Sequence[str], is_one: Callable[[Any], bool]
    ) -> list[Identifier]:
        name = parse_named_namespace(namespace)
        self._namespaces.require(name)
        names = self._metastores.read(lambda client: client.get_all_tables(name[0]))
        found: list[Identifier] = []
        for start in range(0, len(names), _ASKED_TOGETHER):
            records = self._records(name[0], names[start : start + _ASKED_TOGETHER])
            found += [(*name, record.tableName) for record in records if is_one(record)]
        return sorted(found)

    def _records(self, database: str, names: list[str]) -> list[Any]:
        asked = thrift_types().GetTablesRequest(dbName=database, tblNames=names)
        return list(
            self._metastores.read(lambda client: client.get_table_objects_by_name_req(asked)).tables
        )

    def _taken_name_error(self, name: Identifier) -> TableAlreadyExistsError:
        return TableAlreadyExistsError(
            f"a table of {shown(name)} exists in {self.name}, or a view of that name"
        )

    def list_views(self, namespace: str | Sequence[str]) -> list[Identifier]:
        return self._names(namespace, is_view)

    def view_exists(self, identifier: str | Sequence[str]) -> bool:
        record = find_record(self._metastores, parse_table_identifier(identifier))
        return record is not None and is_view(record)

    def drop_view(self, identifier: str | Sequence[str]) -> None:
        name = parse_table_identifier(identifier)
        record = self._view_record(name)
        with self._naming_views(name):
            self._send_drop(record, name, {})

    def rename_view(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        old, new = parse_table_identifier(source), parse_table_identifier(target)
        view = self.load_view(old)
        if old == new:
            return
        self._require_free(new)
        with self._locked_view(view) as lock, self._naming_views(old):
            record = self._view_record_at(view)
            try:
                self._send_rename(record, old, new, view.metadata_location, lock, {})
            except ValidationError:
                # Hive answers in this way whatever it was that came between.
                self._require_free(new)
                raise

    # -- changes ---------------------------------------------------------------------------------

    def _insert_view(self, view: LoadedView, sending: Sending) -> None:
        name = view.identifier
        try:
            self._send_new_record(
                name,
                new_view_record(view, self._form),
                lambda: self._view_took_place(None, view),
                view.metadata.properties,
                self._view_taken,
                sending,
            )
        except TableAlreadyExistsError:
            raise self._view_taken(name) from None

    def _swap_view(self, base: LoadedView, view: LoadedView) -> LoadedView:
        name, path = base.identifier, view.metadata_location
        what, properties = f"the commit {path} of {shown(name)}", base.metadata.properties

        def took_place() -> bool | None:
            return self._view_took_place(base, view)

        def took_place_at_last() -> bool | None:
            with self._locks.hold(name):
                return took_place()

        data = view_metadata_file(view.metadata, path=path)
        with new_metadata_file(self.io, path, data) as sending:
            with self._locked_view(base) as lock, self._naming_views(name):
                record = self._view_record_at(base)
                set_view(record, base, view, self._form)
                alter = Alter(self._metastores, name, record, base.metadata_location, lock, sending)
                change = Change(what, alter.send, alter.send_again, took_place, properties)
                change.carry_out(sending)
                is_sure = lock.is_held()
            if not is_sure:
                # Whoever had the lock then may have put another commit over this one.
                reason = f"the metastore's lock {lock.lock_id} was lost: {lock.failure}"
                if not find_outcome(took_place_at_last, properties, change=what, reason=reason):
                    sending.refute()
                    raise CommitFailedError(f"another writer has replaced {what}: {reason}")
        return view

    def _locked_view(self, base: LoadedView) -> contextlib.AbstractContextManager[HeldLock]:
        return self._locks.hold(base.identifier, lambda: self._view_record_at(base))

    def _view_took_place(self, base: LoadedView | None, view: LoadedView) -> bool | None:
        record = find_record(self._metastores, view.identifier)
        if record is None or not is_view(record):
            return ViewRace(base, view, None).took_place(self.io)
        now = view_pointer_of(record, view.identifier)
        before = record.parameters.get(PREVIOUS_METADATA_LOCATION)
        return ViewRace(base, view, (now, before)).took_place(self.io)

    # -- records ---------------------------------------------------------------------------------

    def _view_location(self, name: Identifier) -> str:
        return view_pointer_of(self._view_record(name), name)

    def _view_record(self, name: Identifier) -> Any:
        record = find_record(self._metastores, name)
        if record is None or not is_view(record):
            raise NoSuchViewError(f"there is no view {shown(name)} in the catalog {self.name}")
        return record

    def _view_record_at(self, base: LoadedView) -> Any:
        """The record as it is, if it still points to the base."""
        record = self._view_record(base.identifier)
        require_pointer(base, record.parameters.get(METADATA_LOCATION))
        return record

    def _require_free(self, name: Identifier) -> None:
        self._namespaces.require(name[:-1])
        if find_record(self._metastores, name) is not None:
            raise self._view_taken(name)

    def _view_taken(self, name: Identifier) -> ViewAlreadyExistsError:
        return ViewAlreadyExistsError(
            f"a view or table of the name {shown(name)} exists in {self.name}"
        )

    @contextmanager
    def _naming_views(self, name: Identifier) -> Iterator[None]:
        """Say of what a metastore does not find that it is a view."""
        try:
            yield
        except NoSuchTableError:
            raise NoSuchViewError(
                f"there is no view {shown(name)} in the catalog {self.name}"
            ) from None
