#!/bin/sh
# The tests in two processes side by side: those of folders that need no Spark, and the others.
set -u
python=${1:-.venv/bin/python}
without_spark="tests/catalog tests/format tests/format_evolution tests/format_metadata tests/planning tests/storage tests/table"
with_spark=""
for folder in tests/*/; do
    folder=${folder%/}
    case " $without_spark tests/__pycache__ " in
        *" $folder "*) ;;
        *) with_spark="$with_spark $folder" ;;
    esac
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT

run() {
    name=$1
    shift
    COVERAGE_FILE=".coverage.$name" FRAZIL_REQUIRE_POSTGRES=1 "$python" -m pytest \
        -p no:cacheprovider --cov --cov-report= --durations=15 -m "not soak" "$@"
}

rm -f .coverage .coverage.plain .coverage.spark
# shellcheck disable=SC2086
run plain $without_spark >"$log" 2>&1 &
plain=$!
# shellcheck disable=SC2086
run spark $with_spark
of_spark=$?
wait "$plain"
of_plain=$?
cat "$log"
"$python" -m coverage combine -q && "$python" -m coverage report --skip-covered
[ "$of_plain" -eq 0 ] && [ "$of_spark" -eq 0 ]
