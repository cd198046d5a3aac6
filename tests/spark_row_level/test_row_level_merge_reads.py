"""What a merge reads, by the scans that Spark tells of."""

import re

import pytest

pytestmark = pytest.mark.check

POSITION = "_tmp_metadata_row_index"


def executions(spark):
    """What Spark keeps of the queries that ran: their numbers, the newest ones only."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    ran = spark._jsparkSession.sharedState().statusStore().executionsList()
    return {ran.apply(place).executionId() for place in range(ran.size())}


def scans_since(spark, seen):
    """Of each scan of Parquet files: the columns that it read, and of how many files."""
    store = spark._jsparkSession.sharedState().statusStore()
    found = []
    for execution in sorted(executions(spark) - seen):
        values, nodes = store.executionMetrics(execution), store.planGraph(execution).allNodes()
        for node in (nodes.apply(place) for place in range(nodes.size())):
            if not node.name().startswith("Scan parquet"):
                continue
            columns = re.search(r"ReadSchema: struct<(.*?)>", node.desc())[1]
            metrics = [node.metrics().apply(place) for place in range(node.metrics().size())]
            (files,) = [each for each in metrics if each.name() == "number of files read"]
            names = frozenset(part.partition(":")[0] for part in columns.split(","))
            found.append((names, int(values.get(files.accumulatorId()).get())))
    return found


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_only_touched_files_are_read_whole(lake, spark, mode):
    table = lake.create_table(
        "db.reads",
        "k bigint, v string, w string, p int",
        partition_by=["p"],
        properties={"write.merge.mode": mode},
    )
    rows = "select id as k, 'old' as v, 'w' as w, int(id % 2) as p from range({}, {}, 1, 1)"
    for start in (0, 30, 60):
        table.append(spark.sql(rows.format(start, start + 30)))
    # The second key lies between those of a file of its partition, but in none.
    source = spark.sql("select * from values (31L, 1, 'new'), (64L, 1, 'added') s(k, p, v)")
    seen = executions(spark)
    done = (
        table.merge(source, ["k", "p"])
        .when_matched_update({"v": "source.v"})
        .when_not_matched_insert({"k": "k", "v": "v", "p": "p"})
        .execute()
    )
    assert (done.files_read, done.files_skipped, done.rows_updated) == (2, 4, 1)
    assert {each.reason.value: each.files for each in done.skipped} == {
        "partition value": 3,
        "column bounds": 1,
    }
    whole = {"k", "v", "w", "p"}
    scans = [(names - {POSITION}, files) for names, files in scans_since(spark, seen)]
    assert ({"k", "p"}, 2) in scans
    assert (whole, 1) in scans
    assert set(map(frozenset, [{"k", "p"}, whole])) >= {names for names, _ in scans}
    assert all(files <= (2 if names == {"k", "p"} else 1) for names, files in scans)
