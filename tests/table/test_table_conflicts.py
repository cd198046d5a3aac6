"""Two writers read the same snapshot: which second commit stands, and which is a conflict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from table_cases import (
    data_file,
    equality_deletes,
    head,
    make_table,
    position_deletes,
    vector,
)

from ci_share import one_in
from frazil.catalog.protocol import Catalog
from frazil.errors import ConflictError, ValidationError
from frazil.table.conflicts.validation import Validation
from frazil.table.handle import TableHandle
from frazil.table.operations import TableOperations

A, B = (data_file(name, "mon", ids=(0, 4)) for name in "ab")
C = data_file("c", "tue")
Step = Callable[[TableHandle], None]
Ours = Callable[[TableOperations, Validation], None]


def overwrite_mon(table: TableOperations, validation: Validation) -> None:
    """Overwrite by predicate."""
    table.files.overwrite([data_file("o")], where="day = 'mon'", validation=validation)


def overwrite_low_mon(table: TableOperations, validation: Validation) -> None:
    """Overwrite by predicate of what the partition does not tell."""
    where = "day = 'mon' and id < 5"
    table.files.overwrite([data_file("o", ids=(0, 4))], where=where, validation=validation)


def rewrite_a(table: TableOperations, validation: Validation) -> None:
    """Copy-on-write of one file."""
    table.files.overwrite([data_file("o")], removed=[A], validation=validation)


def replace_mon(table: TableOperations, validation: Validation) -> None:
    """Dynamic overwrite."""
    table.files.replace_partitions([data_file("o")], validation=validation)


def delete_rows_of_a(table: TableOperations, validation: Validation) -> None:
    """Merge-on-read delete."""
    table.files.row_delta(
        added_deletes=[position_deletes("ours", about="a")], validation=validation
    )


def compact(table: TableOperations, validation: Validation) -> None:
    """Compaction that keeps its age."""
    table.files.rewrite(
        removed=[A, B],
        added=[data_file("ab", rows=20)],
        data_sequence_number=1,
        from_snapshot=validation.from_snapshot,
    )


def compact_anew(table: TableOperations, validation: Validation) -> None:
    """Compaction whose files are new."""
    table.files.rewrite(
        removed=[A, B],
        added=[data_file("ab", rows=20)],
        from_snapshot=validation.from_snapshot,
    )


def append(day: str, ids: tuple[int, int] | None = None) -> Step:
    """Theirs: an append."""
    return lambda t: t.files.append([data_file("theirs", day, ids=ids)])


def overwrite(file: Any, day: str = "mon") -> Step:
    """Theirs: an overwrite of one file."""
    return lambda t: t.files.overwrite([data_file("theirs", day)], removed=[file])


def add_deletes(delete: Any) -> Step:
    """Theirs: a delete."""
    return lambda t: t.files.row_delta(added_deletes=[delete])


def remove(*files: Any) -> Step:
    """Theirs: files go."""
    return lambda t: t.files.delete(removed=files)


SERIALIZABLE: dict[str, Any] = {}
SNAPSHOT: dict[str, Any] = {"isolation": "snapshot"}
ONLY_DELETING: dict[str, Any] = {"check_deletes": False, "isolation": "snapshot"}
MON = {"conflict_filter": "day = 'mon'"}
TUE_ONLY = {"partitions": ((0, ("tue",)),)}
MON_ONLY = {"partitions": ((0, ("mon",)),)}

# (theirs, ours, validation, is it a conflict)
CASES: dict[str, tuple[Step, Ours, dict[str, Any], bool]] = {
    "append where an overwrite read": (append("mon"), overwrite_mon, SERIALIZABLE, True),
    "append elsewhere": (append("tue"), overwrite_mon, SERIALIZABLE, False),
    "append where an overwrite read, snapshot": (append("mon"), overwrite_mon, SNAPSHOT, False),
    "delete where an overwrite read": (
        add_deletes(equality_deletes("eq")), overwrite_mon, SNAPSHOT, True,
    ),
    "delete elsewhere": (
        add_deletes(equality_deletes("eq", "tue")), overwrite_mon, SERIALIZABLE, False,
    ),
    "removal where an overwrite read": (remove(A), overwrite_mon, SNAPSHOT, True),
    "append of rows that all match": (append("mon", (0, 4)), overwrite_low_mon, SNAPSHOT, False),
    "append of rows of which some match": (
        append("mon", (3, 9)), overwrite_low_mon, SNAPSHOT, True,
    ),
    "append of rows of which none match": (
        append("mon", (5, 9)), overwrite_low_mon, SERIALIZABLE, False,
    ),
    "overwrite where an overwrite read": (overwrite(A), overwrite_mon, SNAPSHOT, True),
    "overwrite elsewhere": (overwrite(C, "tue"), overwrite_mon, SERIALIZABLE, False),
    "overwrite of the rewritten file": (overwrite(A), rewrite_a, SNAPSHOT, True),
    "overwrite of another file": (overwrite(B), rewrite_a, SNAPSHOT, False),
    "overwrite of another file, serializable": (overwrite(B), rewrite_a, SERIALIZABLE, True),
    "overwrite in a replaced partition": (overwrite(A), replace_mon, SNAPSHOT, True),
    "overwrite in another partition": (overwrite(C, "tue"), replace_mon, SERIALIZABLE, False),
    "overwrite of the file that we delete from": (
        overwrite(A), delete_rows_of_a, ONLY_DELETING, True,
    ),
    "overwrite of a file beside it": (overwrite(B), delete_rows_of_a, ONLY_DELETING, False),
    "overwrite under a compaction": (overwrite(B), compact, SNAPSHOT, True),
    "overwrite under a compaction with a new age": (overwrite(B), compact_anew, SNAPSHOT, True),
    "overwrite beside a compaction": (overwrite(C, "tue"), compact, SNAPSHOT, False),
    "append while a file is rewritten": (append("tue"), rewrite_a, SERIALIZABLE, True),
    "append outside of the filter": (append("tue"), rewrite_a, MON, False),
    "append inside of the filter": (append("mon"), rewrite_a, MON, True),
    "append outside of the partitions": (append("mon"), rewrite_a, TUE_ONLY, False),
    "append inside of the partitions": (append("mon"), rewrite_a, MON_ONLY, True),
    "append while a file is rewritten, snapshot": (append("mon"), rewrite_a, SNAPSHOT, False),
    "position delete of the rewritten file": (
        add_deletes(position_deletes("p", about="a")), rewrite_a, SNAPSHOT, True,
    ),
    "position delete of another file": (
        add_deletes(position_deletes("p", about="b")), rewrite_a, SNAPSHOT, False,
    ),
    "position delete of the partition": (
        add_deletes(position_deletes("p")), rewrite_a, SNAPSHOT, True,
    ),
    "equality delete of the partition": (
        add_deletes(equality_deletes("e")), rewrite_a, SNAPSHOT, True,
    ),
    "equality delete of another partition": (
        add_deletes(equality_deletes("e", "tue")), rewrite_a, SNAPSHOT, False,
    ),
    "the rewritten file is gone": (remove(A), rewrite_a, SNAPSHOT, True),
    "append to a replaced partition": (append("mon"), replace_mon, SERIALIZABLE, True),
    "append to another partition": (append("tue"), replace_mon, SERIALIZABLE, False),
    "delete in a replaced partition": (
        add_deletes(equality_deletes("eq")), replace_mon, SNAPSHOT, True,
    ),
    "removal in a replaced partition": (remove(A), replace_mon, SNAPSHOT, True),
    "the file that we delete from is gone": (remove(A), delete_rows_of_a, ONLY_DELETING, True),
    "another file is gone": (remove(B), delete_rows_of_a, ONLY_DELETING, False),
    "two deletes of one file": (
        add_deletes(position_deletes("p", about="a")), delete_rows_of_a, ONLY_DELETING, False,
    ),
    "a delete under an update": (
        add_deletes(position_deletes("p", about="a")), delete_rows_of_a, SNAPSHOT, True,
    ),
    "append under a merge": (append("mon"), delete_rows_of_a, SERIALIZABLE, True),
    "append elsewhere under a merge": (
        append("tue"), delete_rows_of_a, {**MON, "isolation": "serializable"}, False,
    ),
    "equality delete under a compaction": (
        add_deletes(equality_deletes("e")), compact, SNAPSHOT, False,
    ),
    "equality delete under a compaction with a new age": (
        add_deletes(equality_deletes("e")), compact_anew, SNAPSHOT, True,
    ),
    "position delete under a compaction": (
        add_deletes(position_deletes("p", about="b")), compact, SNAPSHOT, True,
    ),
    "append under a compaction": (append("mon"), compact, SNAPSHOT, False),
    "removal under a compaction": (remove(B), compact, SNAPSHOT, True),
}  # fmt: skip
OF_VERSION_3: dict[str, tuple[Step, Ours, dict[str, Any], bool]] = {
    "vector where an overwrite read": (
        add_deletes(vector("v", "a")), overwrite_mon, SNAPSHOT, True,
    ),
    "vector elsewhere": (
        add_deletes(vector("v", "c", "tue")), overwrite_mon, SERIALIZABLE, False,
    ),
    "vector of the rewritten file": (add_deletes(vector("v", "a")), rewrite_a, SNAPSHOT, True),
    "vector of another file": (add_deletes(vector("v", "b")), rewrite_a, SNAPSHOT, False),
    "vector in a replaced partition": (add_deletes(vector("v", "b")), replace_mon, SNAPSHOT, True),
    "vector in another partition": (
        add_deletes(vector("v", "c", "tue")), replace_mon, SERIALIZABLE, False,
    ),
    "vector under a compaction": (add_deletes(vector("v", "b")), compact, SNAPSHOT, True),
    "vector beside a compaction": (
        add_deletes(vector("v", "c", "tue")), compact_anew, SNAPSHOT, False,
    ),
}  # fmt: skip
EVERY_CASE = CASES | OF_VERSION_3


def table_of(catalog: Catalog, case: str) -> TableHandle:
    return make_table(catalog, version=3 if case in OF_VERSION_3 else 2, files=[A, B, C])


@pytest.mark.parametrize("case", EVERY_CASE)
def test_the_second_of_two_commits(files_catalog: Catalog, case: str) -> None:
    theirs, ours, options, conflicts = EVERY_CASE[case]
    table = table_of(files_catalog, case)
    read = table.metadata.current_snapshot_id
    theirs(TableHandle(files_catalog, files_catalog.load_table("db.t")))
    before = table.refresh().metadata
    validation = Validation(read, **options)
    if not conflicts:
        ours(table, validation)
        assert len(table.metadata.snapshots) == 3
        return
    with pytest.raises(ConflictError):
        ours(table, validation)
    assert table.refresh().metadata == before


@pytest.mark.check
@pytest.mark.parametrize("case", one_in(4, EVERY_CASE))
def test_the_second_step_of_a_transaction_conflicts_as_it_does_alone(
    files_catalog: Catalog, case: str
) -> None:
    theirs, ours, options, conflicts = EVERY_CASE[case]
    table = table_of(files_catalog, case)
    rival = TableHandle(files_catalog, files_catalog.load_table("db.t"))

    def both_steps() -> None:
        with table.transaction() as tx:
            tx.files.append([data_file("step1", "wed")])
            # A step validates from what it sees, which is the first step's snapshot.
            ours(tx, Validation(tx.metadata.current_snapshot_id, **options))
            theirs(rival)

    if not conflicts:
        both_steps()
        assert len(table.metadata.snapshots) == 4
        return
    with pytest.raises(ConflictError):
        both_steps()
    assert table.refresh().metadata == rival.metadata


# What a conversion of equality deletes, and a compaction that keeps its age, do to each other.
def convert(table: TableOperations, read: int, *, about: str = "a") -> None:
    """The equality delete becomes positions of one file."""
    table.files.rewrite(
        removed_deletes=[equality_deletes("eq")],
        added_deletes=[position_deletes("converted", about=about)],
        from_snapshot=read,
    )


def compact_a(table: TableOperations, read: int) -> None:
    """The file is rewritten as it was before the equality delete, and counts as that old."""
    table.files.rewrite(
        removed=[A], added=[data_file("aa")], data_sequence_number=1, from_snapshot=read
    )


@pytest.mark.parametrize("first", ["conversion", "compaction"])
def test_a_conversion_and_a_compaction_that_did_not_see_it_do_not_both_stand(
    files_catalog: Catalog, first: str
) -> None:
    table = make_table(files_catalog, files=[A])
    planned = head(table)
    table.files.row_delta(added_deletes=[equality_deletes("eq")])
    deleted = head(table)
    if first == "conversion":
        convert(table, deleted)
        with pytest.raises(ConflictError, match="added deletes"):
            compact_a(table, planned)
    else:
        compact_a(table, planned)
        with pytest.raises(ConflictError):
            convert(table, deleted)


def test_equality_deletes_stay_while_a_rewritten_file_needs_them(files_catalog: Catalog) -> None:
    """The conversion is about another file; the compacted one would lose the delete."""
    table = make_table(files_catalog, files=[A, B])
    planned = head(table)
    table.files.row_delta(added_deletes=[equality_deletes("eq")])
    deleted = head(table)
    compact_a(table, planned)
    with pytest.raises(ConflictError, match="equality deletes"):
        convert(table, deleted, about="b")


@pytest.mark.parametrize("isolation", ["SERIALIZABLE", "Serializable"])
def test_isolation_levels_are_words_in_any_case(isolation: Any) -> None:
    assert Validation(None, isolation).isolation == "serializable"


@pytest.mark.parametrize("isolation", ["foo", "", None, 1])
def test_other_words_are_no_isolation_level(isolation: Any) -> None:
    with pytest.raises(ValidationError, match="serializable and snapshot"):
        Validation(None, isolation)


@pytest.mark.parametrize(
    "options",
    [{}, {"conflict_filter": "day = 'tue'"}, {"partitions": ((0, ("tue",)),)}, ONLY_DELETING],
)
def test_a_second_vector_is_a_conflict_whatever_the_filter(
    files_catalog: Catalog, options: dict[str, Any]
) -> None:
    """Rule 217: checked by the referenced file, always."""
    table = make_table(files_catalog, version=3, files=[A, B])
    read = table.metadata.current_snapshot_id
    table.files.row_delta(added_deletes=[vector("theirs", "a")])
    with pytest.raises(ConflictError, match=r"a\.parquet"):
        table.files.row_delta(
            added_deletes=[vector("ours", "a")], validation=Validation(read, **options)
        )
    table.files.row_delta(
        added_deletes=[vector("ours", "b")],
        validation=Validation(read, conflict_filter="day = 'tue'"),
    )


def test_a_second_vector_is_refused_without_any_validation(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, version=3, files=[A])
    table.files.row_delta(added_deletes=[vector("first", "a")])
    with pytest.raises(ConflictError, match="at most one a data file"):
        table.files.row_delta(added_deletes=[vector("second", "a")])
    table.files.row_delta(
        added_deletes=[vector("second", "a")], removed_deletes=[vector("first", "a")]
    )
    assert table.inspect.delete_files()["file_path"].to_list() == ["file:///data/second.puffin"]


def test_a_lost_vector_update_is_a_conflict(files_catalog: Catalog) -> None:
    """Both replace the same vector: the second would lose the first one's deletes."""
    table = make_table(files_catalog, version=3, files=[A])
    table.files.row_delta(added_deletes=[vector("v0", "a")])
    table.files.row_delta(added_deletes=[vector("v1", "a")], removed_deletes=[vector("v0", "a")])
    with pytest.raises(ConflictError):
        table.files.row_delta(
            added_deletes=[vector("v2", "a")], removed_deletes=[vector("v0", "a")]
        )


def test_a_history_that_is_gone_is_a_conflict(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    read = table.metadata.current_snapshot_id
    table.files.append([B])
    table.maintenance.expire_snapshots(older_than="2999-01-01")
    with pytest.raises(ConflictError, match="not known"):
        overwrite_mon(table, Validation(read))


def test_validation_from_an_empty_table(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    overwrite_mon(table, Validation(None))
    with pytest.raises(ConflictError):
        overwrite_mon(table, Validation(None))
