"""What others delete of files that a transaction writes anew is not lost by its later steps."""

import pytest

from ci_share import one_of_each
from frazil.errors import ConflictError

pytestmark = [pytest.mark.usefixtures("tables")]

ROWS = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
DDL = "id bigint, v string"
MARKED, COPIED = "merge-on-read", "copy-on-write"


def upserted(tx):
    tx.upsert(tx.spark.createDataFrame([(3, "new")], DDL), keys="id")


STEPS = {
    "update": lambda tx: tx.update({"v": "'Y'"}, "id = 2"),
    "delete": lambda tx: tx.delete("id = 2"),
    "the same row": lambda tx: tx.update({"v": "'Y'"}, "id = 3"),
    "marks of the same row": upserted,
}


@pytest.mark.check
@pytest.mark.parametrize(("step", "version"), one_of_each(STEPS, [2, 3]))
def test_a_row_that_others_deleted_does_not_come_back(lake, step, version):
    """The second step writes anew what the first one wrote: the rival's delete is of neither."""
    modes = {f"write.{name}.mode": COPIED for name in ("update", "delete")}
    modes["write.merge.mode"] = MARKED
    table = lake.create_table("db.t", DDL, format_version=version, properties=modes)
    table.append(lake.spark.createDataFrame(ROWS, DDL).coalesce(1))
    rival = lake.load_table("db.t")
    transaction = table.transaction()
    transaction.update({"v": "'X'"}, "id = 1")
    STEPS[step](transaction)
    rival.set_properties({"write.delete.mode": MARKED})
    rival.delete("id = 3")
    with pytest.raises(ConflictError):
        transaction.commit()
    found = sorted(tuple(row) for row in lake.load_table("db.t").scan().to_df().collect())
    assert found == [row for row in ROWS if row[0] != 3]


def test_one_step_goes_on(lake):
    table = lake.create_table("db.t", DDL, properties={"write.update.mode": COPIED})
    table.append(lake.spark.createDataFrame(ROWS, DDL).coalesce(1))
    rival = lake.load_table("db.t")
    with table.transaction() as tx:
        tx.update({"v": "'X'"}, "id = 1")
        rival.set_properties({"write.delete.mode": MARKED})
        rival.delete("id = 3")
    found = sorted(tuple(row) for row in lake.load_table("db.t").scan().to_df().collect())
    assert found == [(1, "X"), (2, "b"), (4, "d")]
