"""Views of a metastore: records of the type VIRTUAL_VIEW, as Java's HiveViewOperations has them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from frazil.catalog.identifiers import Identifier, parse_table_identifier, shown
from frazil.catalog.metadata_files import view_metadata_file
from frazil.catalog.outcome import Sending, find_outcome, new_metadata_file
from frazil.catalog.pointer.hive.alters import Alter
from frazil.catalog.pointer.hive.changes import Change
from frazil.catalog.pointer.hive.connection import Metastores
from frazil.catalog.pointer.hive.locks import HeldLock, TableLocks
from frazil.catalog.pointer.hive.namespaces import HiveNamespaces
from frazil.catalog.pointer.hive.parameters import (
    METADATA_LOCATION,
    PREVIOUS_METADATA_LOCATION,
)
from frazil.catalog.pointer.hive.records import (
    find_record,
    identity_of,
    is_view,
    new_view_record,
    set_view,
    view_pointer_of,
)
from frazil.catalog.pointer.hive.settings import TableForm
from frazil.catalog.pointer.pointer_race import ViewRace
from frazil.catalog.pointer.view_pointers import PointerViewMethods, require_pointer
from frazil.catalog.views import LoadedView
from frazil.errors import (
    CommitFailedError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ValidationError,
    ViewAlreadyExistsError,
)
from frazil.storage.files import FileIO


class HiveViewMethods(PointerViewMethods):
    """The views of a metastore; a change of one takes the lock on its name, as Java's does."""

    name: str
    io: FileIO
    _metastores: Metastores
    _locks: TableLocks
    _form: TableForm
    _namespaces: HiveNamespaces

    def list_views(self, namespace: str | Sequence[str]) -> list[Identifier]:
        return self._names(namespace, is_view)

    def view_exists(self, identifier: str | Sequence[str]) -> bool:
        record = find_record(self._metastores, parse_table_identifier(identifier))
        return record is not None and is_view(record)

    def drop_view(self, identifier: str | Sequence[str]) -> None:
        name = parse_table_identifier(identifier)
        identity = identity_of(self._view_record(name))
        sending = Sending()

        def send() -> None:
            self._metastores.change(
                lambda client: client.drop_table(name[0], name[1], False), sending
            )

        def is_gone() -> bool:
            record = find_record(self._metastores, name)
            return record is None or identity_of(record) != identity

        with self._naming_views(name):
            Change(f"the drop of {shown(name)}", send, send, is_gone, {}).carry_out(sending)

    def rename_view(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        old, new = parse_table_identifier(source), parse_table_identifier(target)
        view = self.load_view(old)
        if old == new:
            return
        self._require_free(new)
        with self._locked_view(view) as lock, self._naming_views(old):
            record = self._view_record_at(view)
            identity = identity_of(record)
            record.dbName, record.tableName = new
            sending = Sending()
            alter = Alter(self._metastores, old, record, view.metadata_location, lock, sending)

            def is_renamed() -> bool | None:
                for name, answer in ((new, True), (old, False)):
                    found = find_record(self._metastores, name)
                    if found is not None and identity_of(found) == identity:
                        return answer
                return None

            what = f"the rename of {shown(old)} to {shown(new)}"
            try:
                Change(what, alter.send, alter.send_again, is_renamed, {}).carry_out(sending)
            except ValidationError:
                # Hive answers in this way whatever it was that came between.
                self._require_free(new)
                raise

    # -- changes ---------------------------------------------------------------------------------

    def _insert_view(self, view: LoadedView, sending: Sending) -> None:
        name, record = view.identifier, new_view_record(view, self._form)

        def send() -> None:
            self._metastores.change(lambda client: client.create_table(record), sending)

        try:
            Change(
                f"the creation of {shown(name)}",
                send,
                send,
                lambda: self._view_took_place(None, view),
                view.metadata.properties,
                is_ruled_out=lambda: find_record(self._metastores, name) is not None,
            ).carry_out(sending)
        except TableAlreadyExistsError:
            raise self._view_taken(name) from None
        except CommitFailedError:
            # A metastore may answer with what its database said of the second of two records.
            if find_record(self._metastores, name) is not None:
                raise self._view_taken(name) from None
            raise

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

    @contextmanager
    def _locked_view(self, base: LoadedView) -> Iterator[HeldLock]:
        with self._locks.hold(base.identifier, lambda: self._view_record_at(base)) as lock:
            yield lock

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

    @abstractmethod
    def _names(
        self, namespace: str | Sequence[str], is_one: Callable[[Any], bool]
    ) -> list[Identifier]:
        """The names in a namespace of records for which that holds, sorted."""
