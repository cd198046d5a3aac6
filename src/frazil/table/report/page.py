"""One self-contained page about a table: no file beside it, nothing from a network."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from typing import Final

from frazil.errors import UnsupportedError
from frazil.format.html_text import html_script_json, html_size, html_table, html_text
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.format.snapshots.summaries import count_in
from frazil.planning.plan import plan
from frazil.storage.files import FileIO
from frazil.table.maintenance.optimizing.choices import OptimizingPlan
from frazil.table.maintenance.optimizing.look import look
from frazil.table.maintenance.optimizing.settings import OptimizingSettings
from frazil.table.report.charts import Chart, deletes_chart, sizes_chart, snapshots_chart

_MOST_ROWS: Final = 50

# The policy lets the page load nothing: what it shows is in it.
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #1d2733; background: #f6f7f9; margin: 0; }}
main {{ max-width: 1080px; margin: 0 auto; padding: 24px; }}
h1 {{ font-size: 26px; margin: 0; overflow-wrap: anywhere; }}
h2 {{ font-size: 18px; margin: 0 0 8px; }}
p {{ margin: 4px 0 12px; color: #5b6875; overflow-wrap: anywhere; }}
section {{ background: #fff; border: 1px solid #e1e5ea; border-radius: 8px; padding: 16px;
  margin-top: 16px; overflow-x: auto; }}
.cards {{ display: grid; gap: 16px;
  grid-template-columns: repeat(auto-fit, minmax(min(200px, 45%), 1fr)); }}
.card b {{ display: block; font-size: 24px; white-space: nowrap; }}
.card {{ color: #5b6875; }} .card b {{ color: #1d2733; }}
table {{ border-collapse: collapse; width: 100%; font-size: 13px; }}
th, td {{ text-align: left; padding: 4px 10px; border-bottom: 1px solid #e9ecf0;
  vertical-align: top; max-width: 30em; overflow-wrap: break-word; }}
.pair {{ display: grid; gap: 0 16px;
  grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); }}
.pair section {{ min-width: 0; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{about}</p>
<section class="cards">{cards}</section>
<section><h2>Snapshots over time</h2><div id="snapshots"></div></section>
<div class="pair">
<section><h2>File sizes</h2><div id="sizes"></div></section>
<section><h2>Deletes by partition</h2><div id="deletes"></div></section>
</div>
<section><h2>What optimize would do</h2>{choices}</section>
<section><h2>Partitions, the worst first</h2>{partitions}</section>
<section><h2>Columns</h2>{columns}</section>
<section><h2>Newest snapshots</h2>{snapshots}</section>
</main>
<script>{library}</script>
<script type="application/json" id="charts">{charts}</script>
<script>
const charts = JSON.parse(document.getElementById("charts").textContent);
for (const [name, chart] of Object.entries(charts)) {{
  Plotly.newPlot(name, chart.data, chart.layout, {{displayModeBar: false, responsive: true}});
}}
document.body.dataset.drawn = Object.keys(charts).length;
</script>
</body>
</html>
"""


def report_page(name: str, metadata: TableMetadata, io: FileIO) -> str:
    """Return a page about a table: its snapshots, files and deletes, and what maintenance it needs.

    Args:
        name: the table's.
        metadata: the table.
        io: the table's files.

    Raises:
        UnsupportedError: the plotting library is not installed.
        ConfigurationError: a property of the table is malformed.
    """
    library = _plotting_library()
    found = look(metadata, io)
    sizes = plan(metadata, metadata.current_snapshot, io).files["file_size_in_bytes"]
    target = OptimizingSettings.of(metadata.properties).target_size
    charts: dict[str, Chart] = {
        "snapshots": snapshots_chart(metadata.snapshots),
        "sizes": sizes_chart(sizes, target=target),
        "deletes": deletes_chart(found.partitions),
    }
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return _PAGE.format(
        title=html_text(name),
        about=html_text(
            f"{metadata.location}, format version {metadata.format_version}, as of {now} UTC"
        ),
        cards=_cards(found, metadata),
        choices=_choices(found),
        partitions=_partitions(found),
        columns=_columns(metadata),
        snapshots=_snapshots(metadata),
        library=library.replace("</script", "<\\/script"),
        charts=html_script_json(charts),
    )


def _plotting_library() -> str:
    try:
        offline = import_module("plotly.offline")
    except ImportError as error:
        raise UnsupportedError(
            "a report needs the plotting library plotly: pip install 'frazil[report]'"
        ) from error
    script: str = offline.get_plotlyjs()
    return script


def _cards(found: OptimizingPlan, metadata: TableMetadata) -> str:
    partitions = found.partitions
    after = max(found.read_seconds - found.gain_seconds, 0.0)
    cards = {
        "health": f"{found.health.score} of 100",
        "data files": f"{found.health.files:,}",
        "size of the data files": html_size(found.health.size_in_bytes),
        "rows, deleted ones included": f"{int(partitions['rows'].sum()):,}",
        "partitions": f"{len(partitions):,}",
        "snapshots": f"{len(metadata.snapshots):,}",
        "to read all of it on one core, as predicted": f"{found.read_seconds:.3g} s",
        "the same after optimize": f"{after:.3g} s",
    }
    return "".join(
        f'<div class="card"><b>{html_text(value)}</b>{html_text(name)}</div>'
        for name, value in cards.items()
    )


def _choices(found: OptimizingPlan) -> str:
    if found.is_empty:
        return "<p>Nothing: the table is in good order.</p>"
    return html_table(
        ("kind", "work", "partition", "files", "size", "reason", "a read is faster by, s"),
        [
            (
                str(each.kind), str(each.work), each.partition, each.files,
                html_size(each.size_in_bytes), each.reason, each.gain_seconds,
            )
            for each in found.choices[:_MOST_ROWS]
        ],
    ) + _more(len(found.choices))  # fmt: skip


def _partitions(found: OptimizingPlan) -> str:
    rows = found.partitions.head(_MOST_ROWS).iter_rows(named=True)
    return html_table(
        (
            "partition", "health of 100", "files", "size", "rows",
            "deleted by position", "deleted by equality, at most",
        ),
        [
            (
                row["partition"] or "the table", round(row["score"]), row["files"],
                html_size(row["size"]), row["rows"], round(row["position_rows"]),
                min(round(row["equality_rows"]), row["rows"]),
            )
            for row in rows
        ],
    ) + _more(len(found.partitions))  # fmt: skip


def _columns(metadata: TableMetadata) -> str:
    fields = metadata.schema.fields
    return html_table(
        ("id", "column", "type", "required", "comment"),
        [
            (
                field.field_id, field.name, str(field.field_type),
                "yes" if field.required else "no", field.doc or "",
            )
            for field in fields[:_MOST_ROWS]
        ],
    ) + _more(len(fields))  # fmt: skip


def _snapshots(metadata: TableMetadata) -> str:
    newest = sorted(metadata.snapshots, key=lambda each: -each.timestamp_ms)
    return html_table(
        (
            "committed at (UTC)", "snapshot", "operation", "rows added", "rows removed with files",
            "deletes added by position", "by equality", "rows, deleted ones included",
        ),
        [
            (
                datetime.fromtimestamp(each.timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S"),
                str(each.snapshot_id), each.operation or "?",
                *(_told(each, key) for key in _SUMMARY_KEYS),
            )
            for each in newest[:_MOST_ROWS]
        ],
    ) + _more(len(newest))  # fmt: skip


_SUMMARY_KEYS: Final = (
    "added-records",
    "deleted-records",
    "added-position-deletes",
    "added-equality-deletes",
    "total-records",
)


def _told(snapshot: Snapshot, key: str) -> int | str:
    """What a summary says: a count, or whatever stands there instead."""
    count = count_in(snapshot.summary, key)
    return (snapshot.summary or {}).get(key, 0) if count is None else count


def _more(count: int) -> str:
    return f"<p>… and {count - _MOST_ROWS:,} more</p>" if count > _MOST_ROWS else ""
