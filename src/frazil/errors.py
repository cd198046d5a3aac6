"""Every error that Frazil raises, in one tree.

FrazilError
├── ValidationError                what was asked contradicts the table or the specification
│   ├── EvolutionError             a schema, partition or sort change that is not allowed
│   │   └── NoSuchColumnError      of a column that is not there
│   ├── PredicateError             a filter that cannot be parsed or bound
│   ├── ProcedureError             a CALL that cannot be read, or has wrong arguments
│   ├── SqlSyntaxError             a statement of SQL that cannot be read
│   └── SchemaMismatchError        rows that do not fit the table's schema
├── ConfigurationError             a setting is missing, unknown or malformed
├── AccessDeniedError              a server does not know who asks, or does not permit it
├── UnsupportedError               valid, but outside of what this release supports
│   └── UnsupportedVersionError    a format version that is not adopted
├── InvalidFormatError             bytes that break the specification
│   ├── InvalidMetadataError       a table metadata file
│   ├── InvalidManifestError       a manifest or a manifest list
│   └── InvalidDataFileError       a data, delete or Puffin file
├── NotFoundError
│   ├── NoSuchNamespaceError
│   ├── NoSuchTableError
│   ├── NoSuchSnapshotError
│   ├── NoSuchRefError
│   └── MissingFileError           a file that the table names is not there
├── AlreadyExistsError
│   ├── NamespaceAlreadyExistsError
│   └── TableAlreadyExistsError
├── NamespaceNotEmptyError
├── CommitError
│   ├── CommitFailedError          another writer was first; nothing was changed
│   │   └── OutdatedUpdateError    it made the updates contradict the table
│   ├── ConflictError              a concurrent commit contradicts this one; nothing was changed
│   │   └── ReplacedDeletesError   it changed the deletes of the same data files, and nothing else
│   └── CommitStateUnknownError    the swap was sent and no answer came; nothing was deleted
└── StorageError                   the store refused or failed
    └── CommitNotSentError         before a commit was sent, which did not take place
"""

from __future__ import annotations


class FrazilError(Exception):
    """The base of every error that Frazil raises."""


class ValidationError(FrazilError, ValueError):
    """What was asked contradicts the table or the specification."""


class EvolutionError(ValidationError):
    """A schema, partition or sort change that the specification does not allow."""


class NoSuchColumnError(EvolutionError):
    """A change of a column that is not there, or beside or inside of one."""


class PredicateError(ValidationError):
    """A filter that cannot be parsed, or does not bind to the schema."""


class ProcedureError(ValidationError):
    """A CALL that cannot be read, names no procedure or has wrong arguments; nothing was done."""


class SqlSyntaxError(ValidationError):
    """A statement of SQL that cannot be read; nothing was done."""


class SchemaMismatchError(ValidationError):
    """Rows that do not fit the table's schema; nothing was written."""


class ConfigurationError(FrazilError, ValueError):
    """A setting is missing, unknown or malformed."""


class AccessDeniedError(FrazilError, PermissionError):
    """A catalog's server does not know who asks, or does not permit it; nothing was changed."""


class UnsupportedError(FrazilError, NotImplementedError):
    """Valid Iceberg, but outside of what this release supports."""


class UnsupportedVersionError(UnsupportedError):
    """A format version that is unknown or not adopted (SPEC rule 1)."""


class InvalidFormatError(FrazilError, ValueError):
    """Bytes that break the specification.

    Attributes:
        file: the path of the file, where known.
        field: the dotted name of the offending field, where known.
    """

    def __init__(self, message: str, *, file: str | None = None, field: str | None = None) -> None:
        self.reason = message
        self.file = file
        self.field = field
        place = ", ".join(
            part
            for part in (
                f"field {field!r}" if field is not None else "",
                f"file {file}" if file is not None else "",
            )
            if part
        )
        super().__init__(f"{message} ({place})" if place else message)


class InvalidMetadataError(InvalidFormatError):
    """A table metadata file that breaks the specification."""


class InvalidManifestError(InvalidFormatError):
    """A manifest or a manifest list that breaks the specification."""


class InvalidDataFileError(InvalidFormatError):
    """A data, delete or Puffin file that breaks the specification."""


class NotFoundError(FrazilError):
    """Something that was named is not there."""


class NoSuchNamespaceError(NotFoundError):
    """The namespace does not exist."""


class NoSuchTableError(NotFoundError):
    """The table does not exist."""


class NoSuchViewError(NotFoundError):
    """The view does not exist."""


class NoSuchSnapshotError(NotFoundError, ValueError):
    """The table has no such snapshot, or none at that time."""


class NoSuchRefError(NotFoundError, ValueError):
    """The table has no such branch or tag."""


class AlreadyExistsError(FrazilError):
    """Something of that name is already there."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """The namespace exists."""


class TableAlreadyExistsError(AlreadyExistsError):
    """The table exists."""


class ViewAlreadyExistsError(AlreadyExistsError):
    """The view exists, or a table has its name."""


class NamespaceNotEmptyError(FrazilError):
    """The namespace still holds tables, views or namespaces."""


class CommitError(FrazilError):
    """A change that did not become part of the table."""


class CommitFailedError(CommitError):
    """Another writer was first, or a requirement no longer holds; nothing was changed."""


class RequestRepeatedError(CommitError):
    """A request that the catalog has carried out before came again; nothing was changed."""


class OutdatedUpdateError(CommitFailedError, ValidationError):
    """Updates contradict the table, which they would not had they been made from it as it is.

    Sequence numbers and row ids that were given out meanwhile, or a reference to a snapshot that
    goes. The operation is to be run again.
    """


class ConflictError(CommitError, ValidationError):
    """A concurrent commit contradicts this operation; nothing was changed."""


class ReplacedDeletesError(ConflictError):
    """A concurrent commit changed the deletes of data files that this one's deletes are about.

    Nothing else contradicts, so the operation may be made again on the new snapshot.
    """


class CommitStateUnknownError(CommitError):
    """The swap was sent and its outcome is unknown; no file was deleted."""


class StorageError(FrazilError, OSError):
    """The store refused or failed."""


class CommitNotSentError(StorageError):
    """The store failed before a change was sent: it did not take place, and its files are gone."""


class MissingFileError(NotFoundError, StorageError):
    """A file that the table names is not there."""
