"""Keys of a merge by names: the source's values as the table's columns store them.

A key that its column changes on the way in equals nothing as it is given, as a uuid in capitals or
a timestamp for a date. What would be stored stands in a column beside the given one, which the
conditions and values of clauses see as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import PredicateError, ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.spark.port import SparkPort
from frazil.spark.row_level.values.names import field_at, key_path
from frazil.spark.row_level.values.store_assignment import StoreAssignment
from frazil.spark.session.facts import is_case_sensitive, type_support
from frazil.spark.session.free_names import free_names

Path = tuple[str, ...]
"""The parts of the name of a column or of a field."""


@dataclass(frozen=True, slots=True)
class NamedKeys:
    """Columns and fields of the table that equal those of the source by their names.

    Attributes:
        paths: where they are, on both sides.
        nulls_are_equal: whether NULL equals NULL; otherwise it equals nothing.
        are_distinct: whether no two rows of the source may have the same keys.
    """

    paths: tuple[Path, ...]
    nulls_are_equal: bool = False
    are_distinct: bool = False

    def __post_init__(self) -> None:
        if not self.paths:
            raise ValidationError("on names no column")

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        port: SparkPort,
        *,
        nulls_are_equal: bool = False,
        are_distinct: bool = False,
    ) -> NamedKeys:
        """Find the columns and fields that names mean.

        Raises:
            ValidationError: the table has no such column or field.
        """
        schema, strict = port.metadata.schema, port.case_sensitive
        paths = tuple(key_path(name, schema, case_sensitive=strict) for name in names)
        return cls(paths, nulls_are_equal, are_distinct)

    def stored_keys(self, source: DataFrame, schema: Schema) -> StoredKeys:
        """Return a source with its keys as the table's columns store them; nothing is evaluated.

        Raises:
            SchemaMismatchError: a column cannot hold the keys of the source.
            PredicateError: the source has no such key, or several.
        """
        strict = is_case_sensitive(source.sparkSession)
        store = StoreAssignment(type_support(source.sparkSession), case_sensitive=strict)
        changed: dict[Path, Column] = {}
        for path in self.paths:
            given = F.col(quote_name_always(path))
            try:
                kind = source.select(given).schema.fields[0].dataType
            except AnalysisException as error:
                raise PredicateError(
                    f"the rows of the source have no key {'.'.join(path)!r}: {error}"
                ) from error
            column = field_at(path, schema, case_sensitive=strict)
            stored = store.key(given, kind, column, ".".join(path))
            if stored is not given:
                changed[path] = stored
        store.finish()
        taken = [*source.columns, *(each.name for each in schema.fields)]
        names = free_names((f"_frazil_key_{n}" for n in range(len(changed))), taken)
        added = dict(zip(changed, names, strict=True))
        rows = source
        if added:
            # Spark Connect takes no columns for a mistake.
            rows = source.withColumns({added[path]: stored for path, stored in changed.items()})
        return StoredKeys(keys=self, rows=rows, added=added)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKeys:
    """A source with its keys as the table's columns store them.

    Attributes:
        rows: the source's columns as given, and those that are added.
        added: the columns of keys that are stored in another form than they are given in.
    """

    keys: NamedKeys
    rows: DataFrame
    added: Mapping[Path, str] = field(default_factory=dict)

    @property
    def columns(self) -> dict[Path, Path]:
        """Where each key is in the rows."""
        return {
            path: (self.added[path],) if path in self.added else path for path in self.keys.paths
        }

    def column_of(self, name: str) -> str:
        """Return the column that holds a key of the source in its stored form, or the name."""
        return self.added.get((name,), name)

    def match_condition(self, target: str, source: str) -> str:
        """Return the condition that rows of two aliases have the same keys."""
        equals = "<=>" if self.keys.nulls_are_equal else "="
        return " and ".join(
            f"{quote_name_always([target, *path])} {equals} {quote_name_always([source, *column])}"
            for path, column in self.columns.items()
        )
