"""Namespaces of a metastore: its databases, which lie on one level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.pointer.hive.connection import (
    AlreadyThereError,
    AnsweredError,
    Metastores,
    NotThereError,
    RefusedError,
    UnansweredError,
    thrift_types,
)
from frazil.catalog.pointer.hive.settings import TableForm
from frazil.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    StorageError,
    UnsupportedError,
    ValidationError,
)
from frazil.storage.paths import join, normalize_location

LOCATION: Final = "location"
COMMENT: Final = "comment"
OWNER: Final = "hive.metastore.database.owner"
OWNER_TYPE: Final = "hive.metastore.database.owner-type"


class HiveNamespaces:
    """The databases of a metastore; the names of their properties are Java's."""

    def __init__(
        self, metastores: Metastores, catalog: str, *, warehouse: str | None, form: TableForm
    ) -> None:
        self._metastores = metastores
        self._catalog = catalog
        self._warehouse = warehouse
        self._form = form

    def children(self, levels: Identifier) -> list[Identifier]:
        """Return all databases, sorted, or what lies below one, which is nothing."""
        if levels:
            return []
        found = self._metastores.read(lambda client: client.get_all_databases())
        return sorted((name,) for name in found)

    def is_there(self, name: Identifier) -> bool:
        """Return whether there is a database of a name."""
        return self.find(name) is not None

    def find(self, name: Identifier) -> Any | None:
        """Return the database of a name; None if there is none."""
        if len(name) != 1:
            return None
        return self._metastores.find(lambda client: client.get_database(name[0]))

    def require(self, name: Identifier) -> Any:
        """Return the database of a name."""
        found = self.find(name)
        if found is None:
            raise self.missing_error(name)
        return found

    def missing_error(self, name: Identifier) -> NoSuchNamespaceError:
        """Return the error of a namespace that is not there."""
        advice = "make it with create_namespace" if len(name) == 1 else "they have one level"
        return NoSuchNamespaceError(
            f"there is no namespace {shown(name)} in the catalog {self._catalog}: {advice}"
        )

    def create(self, name: Identifier, properties: Mapping[str, str]) -> None:
        """Make a database; the place is the property ``location``, else in the warehouse."""
        if len(name) != 1:
            raise UnsupportedError(
                f"namespaces of a Hive metastore have one level: {shown(name)} has {len(name)}"
            )
        database = self._database(name[0], properties)
        try:
            self._change(
                f"make the namespace {shown(name)}",
                lambda client: client.create_database(database),
                lambda: self.find(name) is not None,
            )
        except AlreadyThereError:
            raise NamespaceAlreadyExistsError(
                f"the namespace {shown(name)} exists in {self._catalog}"
            ) from None
        except (NotThereError, RefusedError) as error:
            raise ValidationError(
                f"the metastore did not make the namespace {shown(name)}: {error.message}"
            ) from None

    def drop(self, name: Identifier) -> None:
        """Remove an empty database; its folder stays."""
        self.require(name)
        try:
            self._change(
                f"drop the namespace {shown(name)}",
                lambda client: client.drop_database(name[0], False, False),
                lambda: self.find(name) is None,
            )
        except NotThereError:
            raise self.missing_error(name) from None
        except RefusedError as error:
            held = self._metastores.read(lambda client: client.get_all_tables(name[0]))
            what = f"it holds {', '.join(sorted(held))}" if held else error.message
            raise NamespaceNotEmptyError(
                f"the namespace {shown(name)} is not empty: {what}"
            ) from None

    def properties_of(self, name: Identifier) -> dict[str, str]:
        """Return the properties, with ``location``, ``comment`` and the owner among them."""
        return _properties(self.require(name))

    def update(self, name: Identifier, updates: Mapping[str, str], removals: Sequence[str]) -> None:
        """Set and remove properties.

        Raises UnsupportedError where the metastore did not change one of them, as Hive 2 does not;
        the rest was changed.
        """
        found = self.require(name)
        properties = _properties(found)
        # A metastore that is sent none keeps what it has.
        for key in {LOCATION, COMMENT} & properties.keys() & set(removals):
            raise ValidationError(
                f"the metastore does not take the {key} from the namespace {shown(name)}: "
                f"set another instead"
            )
        for key in removals:
            properties.pop(key, None)
            if key == OWNER:
                properties.pop(OWNER_TYPE, None)
        database = self._database(found.name, {**properties, **updates})
        what = f"change the namespace {shown(name)}"
        try:
            self._change(
                what,
                lambda client: client.alter_database(name[0], database),
                lambda: self.properties_of(name).items() >= updates.items(),
            )
        except NotThereError:
            raise self.missing_error(name) from None
        except RefusedError as error:
            raise ValidationError(f"the metastore did not {what}: {error.message}") from None
        now = self.properties_of(name)
        for key in sorted({LOCATION, COMMENT} & updates.keys()):
            before = properties.get(key)
            if now.get(key) == before and not _is_same_value(key, updates[key], before):
                raise UnsupportedError(
                    f"the metastore left the {key} of the namespace {shown(name)} as it was: "
                    f"Hive changes it from 3.0 on"
                )

    def _change(
        self, what: str, call: Callable[[Any], None], took_place: Callable[[], bool]
    ) -> None:
        try:
            self._metastores.change(call)
        except (NotThereError, AlreadyThereError, RefusedError):
            raise
        except AnsweredError as error:
            raise StorageError(f"the metastore did not {what}: {error.message}") from None
        except UnansweredError as error:
            if not took_place():
                raise StorageError(
                    f"it is not known whether the metastore will {what}: {error}"
                ) from None

    def _database(self, name: str, properties: Mapping[str, str]) -> Any:
        types, rest = thrift_types(), dict(properties)
        location, comment = rest.pop(LOCATION, None), rest.pop(COMMENT, None)
        owner, kind = rest.pop(OWNER, None), rest.pop(OWNER_TYPE, None)
        if kind is not None and (
            owner is None or kind.upper() not in types.PrincipalType._NAMES_TO_VALUES
        ):
            raise ValidationError(
                f"{OWNER_TYPE} is {kind!r}: it is USER, ROLE or GROUP, and {OWNER} is set too"
            )
        if location is None and self._warehouse is not None:
            location = join(normalize_location(self._warehouse), f"{name}.db")
        return types.Database(
            name=name,
            description=comment,
            locationUri=location,
            parameters=rest,
            ownerName=owner or self._form.owner,
            ownerType=types.PrincipalType._NAMES_TO_VALUES[(kind or "USER").upper()],
        )


def _is_same_value(key: str, one: str, other: str | None) -> bool:
    if key == LOCATION and other is not None:
        return normalize_location(one) == normalize_location(other)
    return one == other


def _properties(database: Any) -> dict[str, str]:
    found = dict(database.parameters or {})
    named = {LOCATION: database.locationUri, COMMENT: database.description}
    if database.ownerName:
        named[OWNER] = database.ownerName
        names = thrift_types().PrincipalType._VALUES_TO_NAMES
        named[OWNER_TYPE] = names.get(database.ownerType)
    return found | {key: value for key, value in named.items() if value is not None}
