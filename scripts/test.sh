#!/bin/sh
# The tests in two processes side by side, whose folders take about the same time.
set -u
python=${1:-.venv/bin/python}
first="tests/catalog tests/format tests/format_evolution tests/format_metadata tests/planning tests/storage tests/table
tests/cli tests/conformance tests/docs tests/format_predicates tests/spark_stream"
first=$(echo $first)
second=""
for folder in tests/*/; do
    folder=${folder%/}
    case " $first tests/__pycache__ " in
        *" $folder "*) ;;
        *) second="$second $folder" ;;
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

rm -f .coverage .coverage.first .coverage.second
# shellcheck disable=SC2086
run first $first >"$log" 2>&1 &
other=$!
# shellcheck disable=SC2086
run second $second
of_second=$?
wait "$other"
of_first=$?
cat "$log"
"$python" -m coverage combine -q && "$python" -m coverage report --skip-covered
[ "$of_first" -eq 0 ] && [ "$of_second" -eq 0 ]
