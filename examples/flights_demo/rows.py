"""Change rows: a merge of corrections, a delete by partition, an update that is audited first."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import frazil
from flights_demo.show import console, heading, step

KEYS = ["carrier", "flight", "origin", "departure"]


def change_rows(lake: frazil.Lake, flights: frazil.Table, rows: DataFrame) -> None:
    """Correct a week, remove a carrier, and update late entries on a branch.

    Each command prints the files that it read and those that it skipped.
    """
    heading("Change rows")
    flights.set_properties(
        {"write.merge.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
    )
    corrections = (
        rows.where("departure >= '2013-11-28' and departure < '2013-12-05'")
        .where("carrier = 'UA' and arr_delay is not null")
        .select(*KEYS, (F.col("arr_delay") + 5).alias("arr_delay"))
        .dropDuplicates(KEYS)
    )
    with step("Merge corrected arrivals of one week: rows are marked, files stay"):
        merged = (
            flights.merge(corrections, on=KEYS)
            .when_matched_update({"arr_delay": "source.arr_delay"})
            .execute()
        )
    print(merged)
    by_carrier = lake.create_or_replace_table_as_select(
        "nyc.by_carrier", flights.to_df(), partition_by=["carrier"]
    )
    with step("Delete a cancelled carrier from a table by carriers: metadata alone"):
        deleted = by_carrier.delete("carrier = 'HA'")
    print(deleted)
    too_early = "departure >= '2013-12-25' and dep_delay < -15"
    with step("Update late entries on a branch, audit them, publish"):
        flights.create_branch("audit")
        updated = flights.update(
            set={"dep_delay": "greatest(dep_delay, -15.0)"}, where=too_early, branch="audit"
        )
        before = flights.scan(too_early).count()
        after = flights.scan(too_early, ref="audit").count()
        if after == 0:
            flights.fast_forward("main", "audit")
    print(updated)
    console.print(f"too early on main: {before}; on the audited branch: {after}; published")
