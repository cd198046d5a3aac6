"""What a table of Iceberg remembers of the table of PostgreSQL that it follows, and from when.

It is a property of the table, set in the commit of the batch whose position it belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from frazil.cdc.source.tables import Attribute, KnownColumn, SourceTable
from frazil.errors import ValidationError


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSource:
    """A table as it was at the position of the log that the table of Iceberg is at.

    Attributes:
        columns: those that the log had, by number.
        count: the highest number of a column that there was.
        fields: the ids of the columns of Iceberg, by the numbers of those of PostgreSQL. Numbers
            stay when columns are dropped.
        keys: the numbers of the columns that tell rows apart.
        key_id: of the constraint or index that saw to that.
        parts: of each table that its rows lay in, or above those, where the rows lay and which
            transaction made it a partition.
        publication: what the publication was, and said of it.
    """

    oid: int
    columns: Mapping[int, KnownColumn]
    count: int
    fields: Mapping[int, int]
    keys: tuple[int, ...]
    key_id: int
    parts: Mapping[int, tuple[int, str]]
    publication: str

    @classmethod
    def of(cls, source: SourceTable, fields: Mapping[int, int]) -> KnownSource:
        """What there is to remember of a table."""
        return cls(
            oid=source.oid,
            columns={
                each.number: KnownColumn(
                    each.number, each.name, each.type_oid, each.modifier, each.changed_by
                )
                for each in source.columns
            },
            count=len(source.attributes),
            fields=dict(fields),
            keys=source.keys,
            key_id=source.key_id,
            parts={part.oid: (part.filenode, part.joined) for part in source.parts},
            publication=source.publication,
        )

    def with_source(self, source: SourceTable) -> KnownSource:
        """What there is to remember, once the log led to what the table is now."""
        now = KnownSource.of(source, self.fields)
        # Rows are told apart as they were: another key needs another load.
        is_same_key = now.keys == self.keys
        return replace(now, keys=self.keys, key_id=now.key_id if is_same_key else self.key_id)

    def shown_later(self, source: SourceTable) -> list[Attribute]:
        """Columns that there were and that the log did not have; it has them now."""
        return [
            each
            for each in source.columns
            if each.number <= self.count and each.number not in self.columns
        ]

    def to_json(self) -> str:
        """Return the property's text."""
        return json.dumps(
            {
                "table": self.oid,
                "columns": [
                    [each.number, each.name, each.type_oid, each.modifier, each.changed_by]
                    for each in self.columns.values()
                ],
                "highest-column": self.count,
                "fields": sorted(self.fields.items()),
                "key-columns": self.keys,
                "key": self.key_id,
                "parts": [[oid, *where] for oid, where in self.parts.items()],
                "publication": self.publication,
            },
            separators=(",", ":"),
        )

    @classmethod
    def of_json(cls, name: str, text: str) -> KnownSource:
        """Return what a property of the table says.

        Raises:
            ValidationError: it is not one that was written here.
        """
        try:
            found = json.loads(text)
            return cls(
                oid=int(found["table"]),
                columns={each[0]: KnownColumn(*each) for each in found["columns"]},
                count=int(found["highest-column"]),
                fields=dict(found["fields"]),
                keys=tuple(found["key-columns"]),
                key_id=int(found["key"]),
                parts={oid: (filenode, joined) for oid, filenode, joined in found["parts"]},
                publication=str(found["publication"]),
            )
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ValidationError(
                f"the table's property {name} is not what frazil cdc wrote: load the table again, "
                "with --load-again"
            ) from error


def silent_changes(known: KnownSource, now: SourceTable) -> list[str]:
    """Return what happened to a table that may have changed its rows without a word in the log."""
    found = [*_of_partitions(known, now), *_of_rewritten(known, now)]
    shown_later = known.shown_later(now)
    found += [f"the column {each.name} was not in the log before" for each in shown_later]
    if known.publication != now.publication:
        found.append("the publication was changed, which may have left changes out")
    return found


def _of_partitions(known: KnownSource, now: SourceTable) -> Iterator[str]:
    there = {part.oid: part for part in now.parts}
    for oid in known.parts.keys() - there.keys():
        yield f"the partition of the OID {oid} was dropped or detached with its rows"
    for part in now.parts:
        before = known.parts.get(part.oid)
        if before is None and not part.was_born_in:
            yield f"{part} was attached with its rows"
        if before is not None and before[1] != part.joined:
            yield f"{part} was detached and attached again"
        if now.is_partitioned and before is not None and before[0] != part.filenode:
            yield f"{part} was truncated or rewritten by itself"


def _of_rewritten(known: KnownSource, now: SourceTable) -> Iterator[str]:
    if now.is_partitioned or known.parts.get(now.oid, (0, ""))[0] == now.parts[0].filenode:
        return
    if not now.is_published_by_name:
        yield "the table was rewritten, and changes are not logged while it is UNLOGGED"
    for column in known.columns.values():
        attribute = now.attribute(column.number)
        is_changed = attribute is None or attribute.changed_by != column.changed_by
        if attribute is not None and is_changed and not attribute.is_dropped:
            yield f"the table was rewritten, and its column {attribute.name} changed"
    if len(now.attributes) > known.count:
        yield "the table was rewritten, and it has new columns"
