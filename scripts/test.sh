#!/bin/sh
# The tests in four processes side by side: one that asks Spark waits for it half of its time.
set -u
python=${1:-.venv/bin/python}
tables="tests/spark_table tests/spark_write"
reads="tests/spark_read tests/spark_changes tests/conformance"
streams="tests/spark_stream"
other=""
for folder in tests/*/; do
    folder=${folder%/}
    case " $tables $reads $streams tests/__pycache__ " in
        *" $folder "*) ;;
        *) other="$other $folder" ;;
    esac
done
FRAZIL_REQUIRE_POSTGRES=1 scripts/side_by_side.sh "$tables" "$reads" "$streams" "$other" -- "$python" -m pytest \
    -p no:cacheprovider --cov --cov-report= --durations=15 -m "not soak"
failed=$?
"$python" -m coverage combine -q && "$python" -m coverage report --skip-covered
exit "$failed"
