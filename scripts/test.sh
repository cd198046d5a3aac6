#!/bin/sh
# The tests in three processes side by side, of about one length: each waits for Spark half of its time.
#   test.sh [python] [coverage]: with `coverage` a table of the lines that no test ran comes last.
set -u
python=${1:-.venv/bin/python}
# What needs a server of Spark Connect is in the first two, so that there are two of them.
tables="tests/conformance tests/docs tests/planning tests/spark_attached tests/spark_conditions tests/spark_deletes tests/spark_optimizing tests/spark_procedures tests/spark_read tests/spark_rows tests/spark_table tests/spark_transactions tests/spark_write"
streams="tests/cdc tests/spark_local tests/spark_changes tests/spark_compaction tests/spark_migration tests/spark_sql tests/spark_stream tests/spark_upserts tests/maintenance"
other=""
for folder in tests/*/; do
    folder=${folder%/}
    case " $tables $streams tests/__pycache__ " in
        *" $folder "*) ;;
        *) other="$other $folder" ;;
    esac
done
run() {
    FRAZIL_REQUIRE_POSTGRES=1 scripts/side_by_side.sh "$tables" "$streams" "$other" -- "$@" \
        -p no:cacheprovider --durations=15 -m "not soak"
}
if [ "${2:-}" != coverage ]; then
    run "$python" -m pytest
    exit
fi
rm -f .coverage.*
# shellcheck disable=SC2016
run sh -c 'exec "$0" -m slipcover --source src/frazil --json --out ".coverage.$GROUP.json" -m pytest "$@"' "$python"
failed=$?
"$python" -m slipcover --skip-covered --merge .coverage.*.json --out .coverage.json || failed=1
exit "$failed"
