"""What notebooks show: small, complete and escaped."""

import html.parser

import frazil

EVIL = "<script>alert(1)</script>"


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


def test_tables_scans_plans_and_results(spark, tmp_path):
    with frazil.connect(spark, warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        columns = ", ".join(f"c{i} int" for i in range(30))
        table = lake.create_table(
            "db.t",
            f"`{EVIL}` string comment '{EVIL}', {columns}",
            properties={"self-optimizing.minor.trigger.interval": "0"},
        )
        for _ in range(2):
            table.append(spark.sql(f"select '{EVIL}' as `{EVIL}`"))
        files = str(tmp_path / "files")
        spark.sql("select 8 as c0").write.parquet(files)
        scan = table.scan(f"`{EVIL}` = '{EVIL}'", limit=3)
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
        assert EVIL in _Tags(table._repr_html_()).text
        assert EVIL in _Tags(scan._repr_html_()).text
        assert "and 11 more columns" in table._repr_html_()
