"""Manifests are clustered by partition; entries keep what they say."""

import pytest
from compacted_tables import Modelled

from ci_share import only_in_soak
from frazil.errors import ValidationError
from frazil.spark.maintenance.compaction import manifests as on_spark
from frazil.spark.session import costs
from frazil.table.manifests import clusters
from rival_commits import before_the_commit

pytestmark = pytest.mark.check


def told(table):
    """What the live entries say, whatever manifest they are in."""
    found = table.inspect.entries()
    rows = found.filter(found["status"] != 2).to_dicts()
    return sorted(
        (
            r["data_file"]["file_path"],
            r["snapshot_id"],
            r["sequence_number"],
            r["file_sequence_number"],
            r["data_file"]["record_count"],
        )
        for r in rows
    )


def test_manifests_hold_few_partitions_each(lake):
    made = Modelled(
        lake, by=("part", "bucket(4, id)"), properties={"commit.manifest-merge.enabled": "false"}
    )
    made.append(*range(80), files=4)
    size = sum(made.table.inspect.manifests()["length"])
    made.table.set_properties({"commit.manifest.target-size-bytes": str((size + 1) // 2)})
    result = made.table.maintenance.rewrite_manifests(sort_by="part")
    made.check()
    assert result.added_manifests_count == 2
    ranges = [
        (m["partition_summaries"][0]["lower_bound"], m["partition_summaries"][0]["upper_bound"])
        for m in made.other().inspect.manifests().to_dicts()
    ]
    assert sorted(ranges) == [("0", "0"), ("1", "1")]
    with pytest.raises(ValidationError, match="no field 'nowhere'"):
        made.table.maintenance.rewrite_manifests(sort_by=["nowhere"])


def test_manifests_that_come_meanwhile_stay(lake):
    made = Modelled(lake, properties={"commit.manifest-merge.enabled": "false"})
    made.append(*range(20), files=4)
    other = made.other()
    before_the_commit(made.table, lambda: made.append(*range(50, 60), table=other))
    made.table.maintenance.rewrite_manifests()
    made.check()


def test_only_the_spec_that_was_asked_for_is_rewritten(lake):
    made = Modelled(lake, properties={"commit.manifest-merge.enabled": "false"})
    made.append(*range(20), files=3)
    with made.table.update_spec() as update:
        update.add_field("part")
    made.append(*range(20, 40), files=2)
    assert made.table.maintenance.rewrite_manifests(spec_id=0).rewritten_manifests_count == 3
    made.check()
    assert made.table.maintenance.rewrite_manifests().rewritten_manifests_count == 2
    made.check()
    empty = Modelled(lake, "empty")
    assert empty.table.maintenance.rewrite_manifests().snapshot_id is None


def summaries(table):
    """What the manifest list says of each manifest, but for its path and its commit."""
    rows = table.inspect.manifests().drop("path", "length", "added_snapshot_id").to_dicts()
    return sorted(map(repr, rows))


def files_of(table):
    return sorted(file.path for file in table.io.list(table.location))


WRITE_CLUSTERS = on_spark._write_clusters
HEARD = {"here": ["done", "done"], "there": ["reading manifests: 1 of 3", "done"]}


def written_twice_then_lost(*arguments):
    """As where a task's answer did not arrive, so that it is tried again, and then the driver's."""
    assert WRITE_CLUSTERS(*arguments) == WRITE_CLUSTERS(*arguments) != []
    raise RuntimeError("lost")


@pytest.mark.parametrize("version", [only_in_soak(1), 3])
def test_executors_write_the_manifests_that_the_driver_would(lake, monkeypatch, version):
    found = []
    for name, most in (("here", 1 << 30), ("there", -1)):
        made = Modelled(
            lake,
            name,
            version=version,
            by=("part", "bucket(4, id)"),
            properties={
                "commit.manifest-merge.enabled": "false",
                "write.delete.mode": "merge-on-read" if version > 1 else "copy-on-write",
            },
        )
        made.append(*range(60), files=3)
        made.delete("id in (3, 8)", lambda row: row[0] in (3, 8))
        before = told(made.table)
        ids = ["id"] if version < 3 else ["id", "_row_id", "_last_updated_sequence_number"]
        lineage = sorted(made.table.scan(columns=ids).to_df().collect())
        made.table.set_properties({"commit.manifest.target-size-bytes": "8000"})
        monkeypatch.setattr(costs, "REWRITTEN_BYTES", most)
        with monkeypatch.context() as patched:
            if most < 0:
                # Only executors, which import the module anew, write manifests.
                patched.setattr(clusters.ClusterWriter, "write", None)
                before_failure = files_of(made.table)
                patched.setattr(on_spark, "_write_clusters", written_twice_then_lost)
                with pytest.raises(RuntimeError, match="lost"):
                    made.table.maintenance.rewrite_manifests()
                assert files_of(made.table) == before_failure
                patched.setattr(on_spark, "_write_clusters", WRITE_CLUSTERS)
            heard = []
            result = made.table.maintenance.rewrite_manifests(on_progress=heard.append)
        assert [str(heard[0]), str(heard[-1])] == HEARD[name]
        made.check()
        assert told(made.other()) == before
        assert sorted(made.other().scan(columns=ids).to_df().collect()) == lineage
        assert result.added_manifests_count > 1
        snapshot, previous = made.other().current_snapshot, made.table.current_snapshot
        assert snapshot.operation == "replace"
        assert snapshot.summary["total-records"] == previous.summary["total-records"]
        found.append((result.rewritten_manifests_count, summaries(made.other())))
        made.delete("true", lambda row: True)
        made.table.maintenance.rewrite_manifests()
        made.check()
    assert found[0] == found[1]
