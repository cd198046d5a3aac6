#!/bin/sh
# The tests in three processes side by side: one waits for Spark half of its time. Folders that
# share a session are in the first two, so that the third starts none.
set -u
python=${1:-.venv/bin/python}
tables="tests/cli tests/spark_read tests/spark_table tests/spark_write"
streams="tests/conformance tests/spark_changes tests/spark_stream"
other=""
for folder in tests/*/; do
    folder=${folder%/}
    case " $tables $streams tests/__pycache__ " in
        *" $folder "*) ;;
        *) other="$other $folder" ;;
    esac
done
FRAZIL_REQUIRE_POSTGRES=1 scripts/side_by_side.sh "$tables" "$streams" "$other" -- "$python" -m pytest \
    -p no:cacheprovider --cov --cov-report= --durations=15 -m "not soak"
failed=$?
"$python" -m coverage combine -q && "$python" -m coverage report --skip-covered
exit "$failed"
