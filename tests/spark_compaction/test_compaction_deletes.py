"""Equality deletes become positions or vectors; position deletes become fewer files, or vectors."""

import pytest
from compacted_tables import Modelled

from ci_share import one_of_each, only_in_soak
from frazil.spark.session import costs

MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


@pytest.mark.parametrize(("version", "by"), one_of_each([2, 3], [(), ("part",)], test=1))
def test_equality_deletes_become_positions(lake, version, by):
    made = Modelled(lake, version=version, by=by, properties=MERGE_ON_READ)
    made.append(*range(60), files=3)
    made.delete("id in (4, 5)", lambda r: r[0] in (4, 5))
    partition = (1,) if by else ()
    made.delete_by_keys({"name": ["n1", None]}, partition=partition)
    made.append(*range(50, 70))
    made.delete_by_keys(
        {"id": [4, 51, 61, 999], "name": ["n4", "n1", "n1", "n9"]}, partition=partition
    )
    made.check()
    before = {file["file_path"] for file in made.data_files()}
    result = made.table.convert_equality_deletes()
    made.check()
    assert result.converted_equality_delete_files_count == 2
    assert result.added_position_delete_files_count > 0
    assert {file["content"] for file in made.delete_files()} == {1}
    assert {file["file_path"] for file in made.data_files()} == before
    assert made.other().current_snapshot.operation == "replace"
    assert result.snapshot_id == made.other().current_snapshot.snapshot_id
    again = made.table.convert_equality_deletes()
    assert again.snapshot_id is None
    assert "nothing to do" in repr(again)


@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_a_condition_converts_only_what_it_covers(lake, version):
    made = Modelled(lake, version=version, by=("part",))
    made.append(*range(40), files=2)
    made.delete_by_keys({"id": [2, 4]}, partition=(0,))
    made.delete_by_keys({"id": [1, 3]}, partition=(1,))
    result = made.table.convert_equality_deletes("part = 1")
    made.check()
    assert result.converted_equality_delete_files_count == 1
    assert sorted(file["content"] for file in made.delete_files())[-1] == 2
    assert result.left_equality_delete_files_count == 1
    made.table.convert_equality_deletes()
    made.check()
    assert {file["content"] for file in made.delete_files()} == {1}


@pytest.mark.check
def test_deletes_that_match_nothing_go_without_another(lake):
    made = Modelled(lake)
    made.append(*range(10))
    made.delete_by_keys({"id": [5000]})
    made.delete_by_keys({"name": ["m"]})
    result = made.table.convert_equality_deletes()
    assert result.converted_equality_delete_files_count == 2
    assert result.added_position_delete_files_count == 0
    assert made.delete_files() == []
    made.check()


def test_tables_without_deletes_and_of_version_1_stay(lake):
    assert Modelled(lake, "one", version=1).table.convert_equality_deletes().snapshot_id is None
    made = Modelled(lake)
    assert made.table.convert_equality_deletes().snapshot_id is None
    made.append(1, 2)
    assert made.table.convert_equality_deletes().snapshot_id is None


@pytest.mark.check
@pytest.mark.parametrize("way", [only_in_soak("driver"), "executors"])
def test_position_deletes_become_fewer_files(lake, way, monkeypatch):
    if way == "executors":
        monkeypatch.setattr(costs, "DELETE_FILES", 0)
    made = Modelled(
        lake, properties={**MERGE_ON_READ, "write.delete.granularity": "partition"}, by=("part",)
    )
    made.append(*range(60), files=3)
    for number in range(1, 11, 2):
        made.delete(f"id = {number}", lambda r, number=number: r[0] == number)
    assert len(made.delete_files()) == 5
    sizes = sum(file["file_size_in_bytes"] for file in made.delete_files())
    result = made.table.maintenance.rewrite_position_deletes()
    made.check()
    assert result.rewritten_delete_files_count == 5
    assert result.rewritten_bytes_count == sizes
    assert result.added_delete_files_count == len(made.delete_files()) == 1
    assert made.table.maintenance.rewrite_position_deletes().snapshot_id is None
    made.table.maintenance.rewrite_position_deletes(rewrite_all=True, granularity="file")
    made.check()
    assert len(made.delete_files()) == 3


@pytest.mark.parametrize("way", ["driver", only_in_soak("executors")])
def test_position_deletes_become_vectors_after_an_upgrade(lake, way, monkeypatch):
    if way == "executors":
        monkeypatch.setattr(costs, "DELETE_FILES", 0)
    made = Modelled(lake, properties={**MERGE_ON_READ, "write.delete.granularity": "partition"})
    made.append(*range(60), files=3)
    made.delete("id % 4 = 0", lambda r: r[0] % 4 == 0)
    made.table.upgrade(3)
    made.append(*range(100, 120))
    made.delete("id in (1, 101)", lambda r: r[0] in (1, 101))
    made.check()
    result = made.table.maintenance.rewrite_position_deletes()
    made.check()
    assert result.rewritten_delete_files_count >= 1
    found = made.delete_files()
    assert {file["file_format"].lower() for file in found} == {"puffin"}
    assert len({file["referenced_data_file"] for file in found}) == len(found) == 4


@pytest.mark.check
def test_vectors_of_many_small_files_come_into_one(lake):
    made = Modelled(lake, version=3, properties=MERGE_ON_READ)
    for start in range(0, 60, 10):
        made.append(*range(start, start + 10))
        made.delete(f"id = {start}", lambda r, start=start: r[0] == start)
    assert len({file["file_path"] for file in made.delete_files()}) == 6
    result = made.table.maintenance.rewrite_position_deletes()
    made.check()
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (6, 6)
    assert len({file["file_path"] for file in made.delete_files()}) == 1


@pytest.mark.check
def test_dangling_position_deletes_go_with_a_rewrite(lake):
    made = Modelled(lake, properties={**MERGE_ON_READ, "write.delete.granularity": "partition"})
    made.append(*range(60), files=2)
    for number in range(2):
        made.delete(f"id = {number * 11}", lambda r, number=number: r[0] == number * 11)
    made.append(*range(100, 110))
    made.table.compact("id < 100", delete_file_threshold=1)
    made.check()
    if made.delete_files():
        made.table.maintenance.rewrite_position_deletes(rewrite_all=True)
    made.check()
    assert made.delete_files() == []
