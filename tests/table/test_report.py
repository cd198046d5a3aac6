"""The page about a table: self-contained, escaped, and drawn by a real browser."""

import html.parser

import polars as pl
import pytest

import frazil
from frazil.errors import StorageError
from frazil.table.report.charts import deletes_chart, sizes_chart
from html_parts import HOSTILE as EVIL
from html_parts import Parts

pytest.importorskip("plotly", reason="frazil[report] is not installed")


@pytest.fixture(scope="module")
def page(spark, tmp_path_factory):
    """The report of a table whose every text is hostile."""
    folder = tmp_path_factory.mktemp("report")
    with frazil.connect(spark, warehouse=str(folder / "lake")) as lake:
        lake.create_namespace("db")
        table = lake.create_table(
            "db.t",
            f"id bigint comment '{EVIL}', `<script>alert(1)</script>` string, part string",
            partition_by=["part"],
            properties={
                "write.delete.mode": "merge-on-read",
                "self-optimizing.minor.trigger.interval": "0",
            },
        )
        for number in range(3):
            rows = [(number * 10 + i, "x", "<b>bold</b>" if i % 2 else "plain") for i in range(10)]
            table.append(
                spark.createDataFrame(rows, table.to_df().schema),
                snapshot_properties={"added-records": EVIL},
            )
        table.delete("id % 10 = 3")
        path = folder / "report.html"
        table.report(path)
        with pytest.raises(StorageError):
            table.report(folder / "nowhere" / "report.html")
        assert sorted(each.name for each in folder.iterdir()) == ["lake", "report.html"]
        yield path


def test_it_loads_nothing_and_runs_nothing_of_the_table(page):
    parts = Parts(page.read_text())
    assert parts.links == ["data:,"]
    assert parts.tags.count("script") == 3
    assert not {"img", "iframe"} & set(parts.tags)
    assert parts.handlers == []
    shown = parts.text
    assert "<script>alert(1)</script>" in shown
    assert EVIL in shown
    assert "part=%3Cb%3Ebold%3C%2Fb%3E" in shown
    assert "rewrite data files" in shown


# The charts of a report: what they count, and how their axes are marked.


MIB = 1024 * 1024


def partitions(*rows):
    names = ("partition", "rows", "position_rows", "equality_rows")
    return pl.DataFrame([dict(zip(names, row, strict=True)) for row in rows])


def test_partitions_without_deletes_have_no_bar():
    chart = deletes_chart(partitions(("day=1", 200, 50.0, 0.0), ("day=2", 10, 0.0, 0.0)))
    by_position, by_equality = chart["data"]
    assert (by_position["y"], by_position["x"], by_equality["x"]) == (["day=1"], [25.0], [0.0])
    nothing = deletes_chart(partitions(("day=2", 10, 0.0, 0.0)))
    assert [note["text"] for note in nothing["layout"]["annotations"]] == ["no row is deleted"]


@pytest.mark.parametrize("count", [2, 7])
def test_few_files_are_marked_one_by_one(count):
    chart = sizes_chart(pl.Series([MIB, *[128 * MIB] * count]), target=128 * MIB)
    small, good = chart["data"]
    assert (small["y"][0], good["y"][-1]) == (1, count)
    assert sum(small["y"]) == 1
    assert sum(good["y"]) == count
    assert ("dtick" in chart["layout"]["yaxis"]) == (count == 2)


# What notebooks show: small, complete and escaped.


SCRIPT = "<script>alert(1)</script>"


class _Tags(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.check
def test_tables_scans_plans_and_results(spark, tmp_path):
    with frazil.connect(spark, warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        columns = ", ".join(f"c{i} int" for i in range(30))
        table = lake.create_table(
            "db.t",
            f"`{SCRIPT}` string comment '{SCRIPT}', {columns}",
            properties={"self-optimizing.minor.trigger.interval": "0"},
        )
        for _ in range(2):
            table.append(spark.sql(f"select '{SCRIPT}' as `{SCRIPT}`"))
        files = str(tmp_path / "files")
        spark.sql("select 8 as c0").write.parquet(files)
        scan = table.scan(f"`{SCRIPT}` = '{SCRIPT}'", limit=3)
        plan = table.optimize(dry_run=True)
        shown = {
            "db.t": table,
            "limit": scan,
            "residual": scan.plan(),
            "2 fragments wait": plan,
            "2 files became 1": table.optimize(),
            "nothing to do": table.compact(),
            "2 read, 2 updated": table.update({"c0": 7}),
            "1 upserted, 0 deleted": table.apply_changes(spark.sql("select 7 as c0"), keys="c0"),
            "added_files_count": table.maintenance.add_files(f"parquet.`{files}`"),
        }
        for expected, value in shown.items():
            page = value._repr_html_()
            found = _Tags(page)
            assert found.open == []
            assert "script" not in found.seen
            assert expected in found.text
            assert len(page) < 10_000
        assert SCRIPT in _Tags(table._repr_html_()).text
        assert SCRIPT in _Tags(scan._repr_html_()).text
        assert "and 11 more columns" in table._repr_html_()
