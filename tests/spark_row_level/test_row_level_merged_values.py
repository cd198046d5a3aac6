"""Merges that find matches and take the source's values in one look at the table."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from ci_share import only_in_soak
from frazil.errors import SchemaMismatchError

MODES = ["merge-on-read", "copy-on-write"]


@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_every_type_keeps_its_values(lake, spark, version):
    columns = """
        k int, b boolean, l bigint, f float, d double, n decimal(20, 3), day date,
        at timestamp, ntz timestamp_ntz, s string, x binary,
        st struct<a: int, b: string>, li array<struct<c: int>>, m map<string, double>
    """
    moment = datetime(1501, 3, 4, 5, 6, 7, 890123)
    rows = [
        (
            n,
            n % 2 == 0,
            n << 40,
            n / 4,
            -n / 8,
            Decimal(n) / 8,
            date(1400 + n, 2, 28),
            datetime(2024, 1, n + 1, 1, 2, 3, 456789, tzinfo=UTC),
            moment,
            "é" * n,
            bytes([n]),
            (n, None),
            [(n,), None],
            {"x": n / 2},
        )
        for n in range(1, 5)
    ]
    nothing = tuple([None] * (len(rows[0]) - 1))
    table = lake.create_table(
        "db.t", columns, format_version=version, properties={"write.merge.mode": "merge-on-read"}
    )
    table.append(spark.createDataFrame([(n, *nothing) for n in range(4)], columns))
    source = spark.createDataFrame(rows, columns)
    wanted = {row.k: row for row in source.collect()}
    table.upsert(source, keys="k")
    found = {row.k: row for row in table.to_df().collect()}
    assert found.keys() == {0, 1, 2, 3, 4}
    assert tuple(found.pop(0)) == (0, *nothing)
    assert {key: tuple(row) for key, row in found.items()} == {
        key: tuple(row) for key, row in wanted.items()
    }


@pytest.mark.check
@pytest.mark.parametrize("mode", [MODES[0], only_in_soak(MODES[1])])
def test_a_value_that_does_not_fit_is_looked_at_where_it_is_taken(lake, spark, mode):
    table = lake.create_table(
        "db.t", "k bigint, v int not null", properties={"write.merge.mode": mode}
    )
    table.append(spark.range(6).selectExpr("id as k", "0 as v"))
    source = spark.createDataFrame(
        [(1, "d", None), (2, "k", None), (3, "u", 7)], "k bigint, op string, v int"
    )

    def run_with(rows):
        (
            table.merge(rows, on="target.k = source.k")
            .when_matched_delete(condition="source.op = 'd'")
            .when_matched_update_all(condition="source.op = 'u'")
            .execute()
        )

    run_with(source)
    expected = {0: 0, 2: 0, 3: 7, 4: 0, 5: 0}
    assert {row.k: row.v for row in table.to_df().collect()} == expected
    for value in ("cast(null as bigint)", "1L << 40"):
        bad = spark.range(4, 5).selectExpr("id as k", "'u' as op", f"{value} as v")
        snapshot = table.metadata.current_snapshot_id
        with pytest.raises(SchemaMismatchError, match="nothing was"):
            run_with(bad)
        table.refresh()
        assert table.metadata.current_snapshot_id == snapshot
    assert {row.k: row.v for row in table.to_df().collect()} == expected
