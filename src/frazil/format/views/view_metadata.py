"""View metadata as values: versions of a view, their SQL, their log (rules 279-287)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final

from frazil.errors import ValidationError
from frazil.format.schema import Schema

VIEW_FORMAT_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class SqlRepresentation:
    """A view's query in the SQL of one engine (rule 282).

    Attributes:
        sql: a SELECT.
        dialect: the engine whose SQL it is, such as ``spark`` or ``trino``.
    """

    sql: str
    dialect: str
    type: ClassVar[str] = "sql"


@dataclass(frozen=True, slots=True)
class UnknownRepresentation:
    """A representation of a type that the specification does not have; it is kept as it is.

    Attributes:
        type: what it says of itself.
        fields: its JSON, the type among it.
    """

    type: str
    fields: Mapping[str, Any]


ViewRepresentation = SqlRepresentation | UnknownRepresentation


@dataclass(frozen=True, slots=True)
class ViewVersion:
    """A view's query at some time; it never changes (rules 281, 283).

    Attributes:
        version_id: unique in the view.
        schema_id: the columns that the query gives.
        timestamp_ms: when the version was made.
        summary: which engine made it, and such.
        representations: the same query in the SQL of one or more engines.
        default_namespace: where names of one part are looked for.
        default_catalog: where names without a catalog are; None for the view's own catalog.
    """

    version_id: int
    schema_id: int
    timestamp_ms: int
    summary: Mapping[str, str]
    representations: tuple[ViewRepresentation, ...]
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects that the version has SQL of, in small letters."""
        return tuple(
            each.dialect.lower()
            for each in self.representations
            if isinstance(each, SqlRepresentation)
        )

    def sql_for(self, dialect: str) -> str | None:
        """Return the SQL of a dialect, in any case; None where there is none."""
        known = (each for each in self.representations if isinstance(each, SqlRepresentation))
        return next((each.sql for each in known if each.dialect.lower() == dialect.lower()), None)

    def is_same_as(self, other: ViewVersion) -> bool:
        """Return whether both say the same, whatever their ids and times."""
        return _content(self) == _content(other)


@dataclass(frozen=True, slots=True)
class ViewHistoryEntry:
    """When a version became the current one (rule 284)."""

    timestamp_ms: int
    version_id: int


@dataclass(frozen=True)
class ViewMetadata:
    """A view: its versions, their schemas, its log and properties (rule 279).

    Attributes:
        view_uuid: names the view for ever.
        location: the folder of its metadata files.
        schemas: those of its versions.
        current_version_id: the version that a reader runs.
        versions: the versions that are kept.
        version_log: which version became current when.
        properties: as ``comment``.
        format_version: always 1.
    """

    view_uuid: str
    location: str
    schemas: tuple[Schema, ...]
    current_version_id: int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[ViewHistoryEntry, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    format_version: int = VIEW_FORMAT_VERSION

    @cached_property
    def versions_by_id(self) -> Mapping[int, ViewVersion]:
        """The versions by their ids."""
        return {each.version_id: each for each in self.versions}

    @cached_property
    def schemas_by_id(self) -> Mapping[int, Schema]:
        """The schemas by their ids."""
        return {each.schema_id: each for each in self.schemas}

    @property
    def current_version(self) -> ViewVersion:
        """The version that a reader runs."""
        return self.version(self.current_version_id)

    @property
    def schema(self) -> Schema:
        """The columns of the current version."""
        return self.schemas_by_id[self.current_version.schema_id]

    def version(self, version_id: int) -> ViewVersion:
        """Return the version of an id; ValidationError where there is none."""
        found = self.versions_by_id.get(version_id)
        if found is None:
            raise ValidationError(
                f"the view has no version {version_id}; it has {sorted(self.versions_by_id)}"
            )
        return found


def _content(version: ViewVersion) -> tuple[object, ...]:
    return (
        dict(version.summary),
        version.representations,
        version.default_catalog,
        version.default_namespace,
        version.schema_id,
    )
