"""Tables in a Hive metastore, where a commit alters the record under the metastore's lock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from thrift.Thrift import TException

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_namespace,
    parse_table_identifier,
    require_folder_names,
    shown,
)
from frazil.catalog.metadata_files import metadata_bytes
from frazil.catalog.outcome import Sending, find_outcome, new_metadata_file
from frazil.catalog.pointer.catalog import PointerCatalog
from frazil.catalog.pointer.hive.connection import (
    AlreadyThereError,
    LostAnswerError,
    Metastores,
    NotThereError,
    RefusedError,
    thrift_types,
)
from frazil.catalog.pointer.hive.locks import HeldLock, TableLocks, message_of
from frazil.catalog.pointer.hive.namespaces import HiveNamespaces
from frazil.catalog.pointer.hive.parameters import METADATA_LOCATION, lock_enabled
from frazil.catalog.pointer.hive.records import (
    find_record,
    is_table,
    new_record,
    pointer_of,
    set_table,
)
from frazil.catalog.pointer.hive.settings import (
    PROPERTY_NAMES,
    ConnectionSettings,
    LockTimes,
    TableForm,
)
from frazil.catalog.pointer.pointer_race import PointerRace
from frazil.catalog.protocol import Capability, LoadedTable, StagedTable
from frazil.errors import (
    CommitFailedError,
    ConfigurationError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_version, new_metadata_file_path
from frazil.storage.paths import join, normalize_location

_ASKED_TOGETHER = 100


class HiveCatalog(PointerCatalog):
    """A Hive metastore of 2.3 or later, shared with Java's HiveCatalog, PyIceberg and Hive.

    Properties: ``uri`` (``thrift://host:9083``, several with commas between), ``warehouse``,
    ``ugi``, ``hive.kerberos-authentication``, ``hive.hive2-compatible``, and Java's
    ``iceberg.engine.hive.*``, ``iceberg.hive.*`` and ``hive.metastore.client.*``.
    """

    kind: ClassVar[str] = "hive"
    capabilities: ClassVar[frozenset[Capability]] = PointerCatalog.capabilities | {
        Capability.NAMESPACE_PROPERTIES,
        Capability.RENAMES,
        Capability.TABLE_LOCATIONS,
    }
    property_names: ClassVar[frozenset[str] | None] = PROPERTY_NAMES

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        super().__init__(name, properties, io=io)
        self._form = TableForm.from_properties(properties)
        self._metastores = Metastores(name, ConnectionSettings.from_properties(name, properties))
        owner = self._form.owner
        self._locks = TableLocks(self._metastores, LockTimes.from_properties(properties), owner)
        self._namespaces = HiveNamespaces(
            self._metastores, name, warehouse=properties.get("warehouse"), owner=owner
        )

    # -- namespaces ------------------------------------------------------------------------------

    def create_namespace(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        self._namespaces.create(parse_named_namespace(namespace), properties or {})

    def drop_namespace(self, namespace: str | Sequence[str]) -> None:
        self._namespaces.drop(parse_named_namespace(namespace))

    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        levels = parse_namespace(parent)
        if not levels:
            return self._namespaces.names()
        self._namespaces.required(levels)
        return []

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        return self._namespaces.find(parse_named_namespace(namespace)) is not None

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        return self._namespaces.properties_of(parse_named_namespace(namespace))

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        changes = dict(updates or {})
        if both := sorted(set(changes) & set(removals)):
            raise ValidationError(f"the properties {both} are both set and removed")
        self._namespaces.update(parse_named_namespace(namespace), changes, removals)

    # -- tables ----------------------------------------------------------------------------------

    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        name = parse_named_namespace(namespace)
        self._namespaces.required(name)
        names = self._metastores.read(lambda client: client.get_all_tables(name[0]))
        found: list[Identifier] = []
        for start in range(0, len(names), _ASKED_TOGETHER):
            records = self._records(name[0], names[start : start + _ASKED_TOGETHER])
            found += [(*name, record.tableName) for record in records if is_table(record)]
        return sorted(found)

    def metadata_location(self, identifier: str | Sequence[str]) -> str:
        name = parse_table_identifier(identifier)
        record = find_record(self._metastores, name)
        if record is None:
            raise self._no_table(name)
        return pointer_of(record, name)

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        staged = super().stage_table(identifier, metadata)
        if find_record(self._metastores, staged.identifier) is not None:
            raise self._taken(staged.identifier)
        return staged

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        old, new = parse_table_identifier(source), parse_table_identifier(target)
        self._require_namespace(new[:-1])
        table = self.load_table(old)
        if find_record(self._metastores, new) is not None:
            raise self._taken(new)
        with self._locked(old, table.metadata.properties) as lock:
            record = self._record_at(table)
            record.dbName, record.tableName = new
            self._settle(
                lambda: self._alter(old, record, table.metadata_location if lock is None else None),
                lambda: self._is_renamed(table, new),
                f"the rename of {shown(old)} to {shown(new)}",
                table.metadata.properties,
                Sending(),
            )

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        name = parse_table_identifier(identifier)
        require_folder_names(name)
        database = self._namespaces.find(name[:-1])
        if database is not None and database.locationUri:
            return join(normalize_location(database.locationUri), name[-1])
        warehouse = self.properties.get("warehouse")
        if not warehouse:
            raise ConfigurationError(
                f"no location for {shown(name)}: set the catalog's warehouse or the namespace's "
                f"location"
            )
        return join(normalize_location(warehouse), f"{name[0]}.db", *name[1:])

    def close(self) -> None:
        self._metastores.close()

    def _find(self, name: Identifier) -> str | None:
        record = find_record(self._metastores, name)
        return pointer_of(record, name) if record is not None and is_table(record) else None

    def _create(self, name: Identifier, metadata: TableMetadata) -> LoadedTable:
        path = new_metadata_file_path(metadata, version=0)
        table = self._loaded(name, metadata, path)
        data = metadata_bytes(self.io, metadata, path=path)
        with new_metadata_file(self.io, path, data) as sending:
            self._insert(table, sending)
        return table

    def _register(
        self, name: Identifier, metadata: TableMetadata, metadata_location: str
    ) -> LoadedTable:
        table = self._loaded(name, metadata, metadata_location)
        self._insert(table, Sending())
        return table

    def _insert(self, table: LoadedTable, sending: Sending) -> None:
        record = new_record(table, self._form)
        self._settle(
            lambda: self._metastores.change(lambda client: client.create_table(record), sending),
            lambda: self._took_place(None, table),
            f"the creation of {shown(table.identifier)}",
            table.metadata.properties,
            sending,
        )

    def _swap(self, base: LoadedTable, updated: TableMetadata) -> LoadedTable:
        name, version = base.identifier, metadata_version(base.metadata_location)
        path = new_metadata_file_path(updated, version=0 if version is None else version + 1)
        table = self._loaded(name, updated, path)
        data = metadata_bytes(self.io, updated, path=path)
        with (
            new_metadata_file(self.io, path, data) as sending,
            self._locked(name, base.metadata.properties) as lock,
        ):
            record = self._record_at(base)
            set_table(record, base, table, self._form)
            if lock is not None:
                lock.require()
            self._settle(
                lambda: self._alter(
                    name, record, base.metadata_location if lock is None else None, sending
                ),
                lambda: self._took_place(base, table),
                f"the commit {path} of {shown(name)}",
                base.metadata.properties,
                sending,
            )
        return table

    def _drop(self, name: Identifier) -> None:
        location = self.metadata_location(name)
        thrift_types()
        sending = Sending()

        def gone() -> bool:
            record = find_record(self._metastores, name)
            return record is None or not is_table(record) or pointer_of(record, name) != location

        try:
            self._settle(
                lambda: self._metastores.change(
                    lambda client: client.drop_table(name[0], name[1], False), sending
                ),
                gone,
                f"the drop of {shown(name)}",
                self.properties,
                sending,
            )
        except NotThereError:
            raise self._no_table(name) from None

    # -- changes of records ----------------------------------------------------------------------

    def _locked(
        self, name: Identifier, properties: Mapping[str, str]
    ) -> contextlib.AbstractContextManager[HeldLock | None]:
        if lock_enabled(properties, self._form):
            return self._locks.held(name)
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

    def _alter(
        self, name: Identifier, record: Any, expected: str | None, sending: Sending | None = None
    ) -> None:
        """Alter a record; without a lock only if it points where it is expected to.

        With a lock the condition is left out, as Java does: on Derby and Oracle the metastore
        cannot compare the values, and refuses.
        """
        conditions = {"DO_NOT_UPDATE_STATS": "true"}
        if expected is not None:
            conditions |= {
                "expected_parameter_key": METADATA_LOCATION,
                "expected_parameter_value": expected,
            }
        context = thrift_types().EnvironmentContext(properties=conditions)
        self._metastores.change(
            lambda client: client.alter_table_with_environment_context(
                name[0], name[1], record, context
            ),
            sending,
        )

    def _settle(
        self,
        send: Callable[[], None],
        took_place: Callable[[], bool | None],
        change: str,
        properties: Mapping[str, str],
        sending: Sending,
    ) -> None:
        """Send a change; where no answer came, or one that leaves it open, ask what became of it.

        A change whose answer was lost may still be under way.  So it is sent again until one has an
        answer: of two of the same the metastore carries out one.
        """
        try:
            with self._refusals(sending):
                send()
            return
        except LostAnswerError as error:
            reason = str(error)
        except TException as error:
            if took_place():
                return
            sending.refute()
            raise CommitFailedError(f"{change} was refused: {message_of(error)}") from None

        def settled() -> bool | None:
            if took_place():
                return True
            try:
                with self._refusals(sending):
                    send()
            except (TException, CommitFailedError, TableAlreadyExistsError, NoSuchTableError):
                return took_place()
            return True

        if not find_outcome(settled, properties, change=change, reason=reason):
            sending.refute()
            raise CommitFailedError(f"{change} did not take place: {reason}")

    @contextlib.contextmanager
    def _refusals(self, sending: Sending) -> Iterator[None]:
        """Give errors that a metastore raises before it changes anything their own types."""
        thrift_types()
        try:
            yield
        except AlreadyThereError as error:
            sending.refute()
            raise TableAlreadyExistsError(message_of(error)) from None
        except NotThereError as error:
            sending.refute()
            raise NoSuchTableError(message_of(error)) from None
        except RefusedError as error:
            sending.refute()
            text = message_of(error)
            advice = ": set metastore.disallow.incompatible.col.type.changes to false in the server"
            raise ValidationError(text + (advice if "incompatible" in text else "")) from None

    def _took_place(self, base: LoadedTable | None, table: LoadedTable) -> bool | None:
        race = PointerRace(base, table, lambda: self._find(table.identifier))
        return race.took_place(self.io)

    def _is_renamed(self, table: LoadedTable, new: Identifier) -> bool:
        return self._find(new) == table.metadata_location and self._find(table.identifier) is None

    def _records(self, database: str, names: list[str]) -> list[Any]:
        asked = thrift_types().GetTablesRequest(dbName=database, tblNames=names)
        return list(
            self._metastores.read(lambda client: client.get_table_objects_by_name_req(asked)).tables
        )

    def _taken(self, name: Identifier) -> TableAlreadyExistsError:
        return TableAlreadyExistsError(
            f"a table or view of the name {shown(name)} exists in {self.name}"
        )

    def _require_namespace(self, namespace: Identifier) -> None:
        if self._namespaces.find(namespace) is None:
            raise self._namespaces.missing(namespace)
