"""Batches of a stream that are written to two tables: each counts once in both."""

import pytest
from transaction_cases import COLUMNS, ROWS, both, frame, rows

import frazil

pytestmark = [pytest.mark.usefixtures("tables")]


def test_a_batch_that_comes_again_does_nothing(lake, spark, files):
    calls = []

    def write(tx):
        calls.append(1)
        tx.table("db.a").append(frame(spark, [(3, 30)]))
        tx.table("db.b").delete("id = 1")
        return "done"

    batch = frazil.Batch("q", 0)
    assert lake.run_transaction(write, batch=batch) == "done"
    before = files()
    assert lake.run_transaction(write, batch=batch) is None
    assert files() == before
    assert both(lake) == ([*ROWS, (3, 30)], ROWS[1:])
    assert lake.run_transaction(write, batch=frazil.Batch("q", 1)) == "done"
    assert lake.run_transaction(write, batch=frazil.Batch("other", 0)) == "done"
    assert rows(lake, "db.a") == [*ROWS, *[(3, 30)] * 3]


@pytest.mark.check
def test_a_stream_whose_batches_end_in_a_crash_before_the_checkpoint(lake, spark, tmp_path):
    source = lake.create_table("db.source", COLUMNS)
    crashes = [True, False, True, False]

    def write(df, number):
        def work(tx):
            tx.table("db.a").append(df)
            tx.table("db.b").merge(df, on=["id"]).when_not_matched_insert_all().execute()

        lake.run_transaction(work, batch=frazil.Batch("stream", number))
        if crashes.pop(0):
            raise ZeroDivisionError

    for number in range(2):
        source.append(frame(spark, [(10 + number, 1)]))
        for _ in range(2):
            stream = source.read_stream(checkpoint=tmp_path / "log")
            query = (
                stream.writeStream.foreachBatch(write)
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            try:
                query.awaitTermination()
            except Exception as error:
                assert "ZeroDivisionError" in str(error)  # noqa: PT017
    assert crashes == []
    assert both(lake) == ([*ROWS, (10, 1), (11, 1)], [*ROWS, (10, 1), (11, 1)])
