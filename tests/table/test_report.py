"""The page about a table: self-contained, escaped, and drawn by a real browser."""

import pytest

import frazil
from frazil.errors import StorageError
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
