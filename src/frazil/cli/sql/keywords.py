"""Words of SQL that are offered while a statement is typed."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_WORDS: Final = _words(
    """
    SELECT WITH INSERT MERGE UPDATE DELETE CREATE ALTER DROP SHOW DESCRIBE EXPLAIN CALL USE
    BEGIN COMMIT ROLLBACK TRUNCATE COMMENT CACHE REPLACE VALUES TABLE FROM REFRESH
    UNCACHE
    """
)
"""What a statement can begin with."""

KEYWORDS: Final = _words(
    """
    ADD AFTER ALL ALTER AND ANTI ARRAY AS ASC BEGIN BETWEEN BIGINT BINARY BOOLEAN BRANCH BUCKET
    BY CACHE CALL CASE CAST COLUMN COLUMNS COMMENT COMMIT CREATE CROSS CURRENT DATE DAYS DECIMAL
    DEFAULT DELETE DESC DESCRIBE DISTINCT DISTRIBUTED DOUBLE DROP ELSE END EXCEPT EXISTS EXPLAIN
    EXTENDED FALSE FIELD FIELDS FIRST FLOAT FOLLOWING FROM FULL FUNCTIONS GROUP HAVING HISTORY
    HOURS IDENTIFIER IF ILIKE IN INNER INSERT INT INTERSECT INTERVAL INTO IS JOIN JSON LAST
    LATERAL LAZY LEFT LIKE LIMIT LOCALLY LOCATION MAP MATCHED MERGE MONTHS NAME NAMESPACE
    NAMESPACES NATURAL NOT NULL NULLS OF OFFSET ON OR ORDER ORDERED OUTER OVER OVERWRITE
    PARTITION PARTITIONED PARTITIONS PIVOT PRECEDING PROCEDURE PROCEDURES PROPERTIES PURGE
    QUALIFY RANGE RECURSIVE RENAME REPLACE RETAIN RIGHT ROLLBACK ROLLUP ROW ROWS SCHEMA SELECT
    SEMI SET SHOW SMALLINT SNAPSHOT SOURCE STRING STRUCT SYSTEM_TIME SYSTEM_VERSION TABLE TABLES
    TAG TARGET TBLPROPERTIES TEMPORARY THEN TIMESTAMP TIMESTAMP_NTZ TINYINT TO TRANSACTION TRUE
    TRUNCATE UNBOUNDED UNCACHE UNION UNORDERED UNPIVOT UNSET UPDATE USE USING VALUES VERSION
    VIEW VIEWS WHEN WHERE WINDOW WITH WRITE YEARS
    """
)

FUNCTIONS: Final = _words(
    """
    abs avg ceil coalesce collect_list concat count current_date current_timestamp date_add
    date_diff date_format date_trunc dense_rank element_at explode floor from_json
    get_json_object greatest lag lead least length lower max max_by min min_by nullif percentile
    rank regexp_extract regexp_replace replace round row_number sequence size split stddev
    substring sum to_date to_json to_timestamp trim try_cast upper uuid
    """
)
"""The functions of Spark that are used most."""

METADATA_TABLES: Final = _words(
    """
    all_data_files all_delete_files all_entries all_files all_manifests changes data_files
    delete_files entries files history manifests metadata_log_entries partitions position_deletes
    refs snapshots
    """
)

BEFORE_A_TABLE: Final = frozenset(
    ("FROM", "JOIN", "INTO", "TABLE", "UPDATE", "DESCRIBE", "DESC", "OVERWRITE", "VIEW", "USING")
)
"""After these words a table is named."""

BEFORE_A_NAMESPACE: Final = frozenset(("USE", "NAMESPACE", "IN", "SCHEMA", "DATABASE"))
"""After these words a namespace can be named."""
