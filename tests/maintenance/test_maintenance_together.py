"""After every kind of commit, expiry and orphan removal leave exactly what metadata reaches."""

import os
import time

import pytest
from independent_walk import local, lying, reached

from ci_share import only_in_soak


@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_the_folder_holds_what_metadata_reaches(spark, lake, version):
    table = lake.create_table(
        "db.t",
        "id bigint, part int",
        partition_by=["part"],
        format_version=version,
        properties={
            "write.delete.mode": "merge-on-read",
            "write.metadata.previous-versions-max": "3",
            "write.metadata.delete-after-commit.enabled": "true",
        },
    )
    part = "cast(id % 3 as int) as part"
    for start in range(0, 40, 10):
        table.append(spark.range(start, start + 10).selectExpr("id", part))
    table.create_branch("audit")
    table.append(spark.range(100, 103).selectExpr("id", part), branch="audit")
    table.delete("id % 7 = 3")
    table.delete("id = 101", branch="audit")
    table.maintenance.compute_table_stats()
    table.maintenance.compute_partition_stats()
    # What the rest of the history leaves behind stays with the tag: deletes, both statistics.
    table.create_tag("kept")
    tagged = {row.id for row in table.to_df().collect()}
    table.upsert(spark.range(0, 5).selectExpr("id", part), keys="id")
    table.compact(rewrite_all=True, remove_dangling_deletes=True)
    table.maintenance.rewrite_manifests()
    table.maintenance.compute_partition_stats()
    table.overwrite(spark.range(50, 55).selectExpr("id", "2 as part"), where="part = 2")
    table.maintenance.rewrite_table_path(table.location, "s3://elsewhere/t")
    rows = {row.id for row in table.to_df().collect()}
    audit = {row.id for row in table.scan(ref="audit").to_df().collect()}
    table.maintenance.expire_snapshots_keeping_files(older_than="2999-01-01", retain_last=2)
    table.maintenance.expire_snapshots(older_than="2999-01-01")
    moment = time.time() - 4 * 24 * 3600
    for path in lying(table.location):
        os.utime(path, (moment, moment))
    assert table.maintenance.remove_orphan_files().deleted_files_count > 0
    visible = {path for path in lying(table.location) if not path.name.startswith((".", "_"))}
    reachable = reached(table.metadata_location)
    assert visible == reachable
    names = [path.name for path in reachable]
    assert sum("deletes" in name or name.endswith(".puffin") for name in names) >= 1
    assert any(name.endswith(".stats") for name in names)
    assert sum(name.startswith("partition-stats") for name in names) == 1
    assert {row.id for row in table.scan(ref="kept").to_df().collect()} == tagged
    assert local(table.metadata_location) in visible
    assert table.maintenance.check().is_sound
    assert {row.id for row in table.to_df().collect()} == rows
    assert {row.id for row in table.scan(ref="audit").to_df().collect()} == audit
