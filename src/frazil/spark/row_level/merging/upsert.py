"""Upsert: rows come in place of those with the same keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from frazil.errors import ValidationError
from frazil.format.arguments import one_or_several
from frazil.spark.port import SparkPort
from frazil.spark.row_level.figures import ChangeResult
from frazil.spark.row_level.merging.clauses.clause import Clause, Do, When
from frazil.spark.row_level.merging.keys.named_keys import NamedKeys
from frazil.spark.row_level.merging.merge import Merge
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.writes import Rows

NullKeys = Literal["distinct", "equal"]

_CLAUSES: Final = (
    Clause(when=When.MATCHED, do=Do.UPDATE),
    Clause(when=When.NOT_MATCHED, do=Do.INSERT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """Replace the rows of the same keys, and add those that are new, in one commit.

    Attributes:
        rows: no two of them have the same keys.
        keys: the columns that tell rows apart; the schema's identifier fields unless given.
        null_keys: whether NULL in a key is ``distinct`` from all others, or ``equal`` to NULL.
        options: where the snapshot goes, and what of others' commits conflicts.
    """

    rows: Rows
    keys: str | Sequence[str] | None = None
    null_keys: NullKeys = "distinct"
    options: CommitOptions = field(default_factory=CommitOptions)

    def __post_init__(self) -> None:
        if self.null_keys not in get_args(NullKeys):
            raise ValidationError(f"null_keys is 'distinct' or 'equal', not {self.null_keys!r}")

    def run(self, port: SparkPort) -> ChangeResult:
        """Run it; see `Table.upsert`."""
        schema = port.metadata.schema
        names = [str(schema.find_column_name(n)) for n in schema.identifier_field_ids]
        if self.keys is not None:
            names = list(one_or_several(self.keys, argument="keys"))
        if not names:
            raise ValidationError(
                "upsert needs keys: name the columns that tell rows apart, as keys=['id'], or set "
                "the schema's identifier fields"
            )
        equal = self.null_keys == "equal"
        keys = NamedKeys.of(names, port, nulls_are_equal=equal, are_distinct=True)
        return Merge(source=self.rows, on=keys, clauses=_CLAUSES, options=self.options).run(port)
