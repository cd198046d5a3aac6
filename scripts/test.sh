#!/bin/sh
# The tests in two processes side by side, whose folders take about the same time.
set -u
python=${1:-.venv/bin/python}
one="tests/catalog tests/format tests/format_evolution tests/format_metadata tests/storage
tests/table tests/cli tests/conformance tests/spark_stream"
one=$(echo $one)
other=""
for folder in tests/*/; do
    folder=${folder%/}
    case " $one tests/__pycache__ " in
        *" $folder "*) ;;
        *) other="$other $folder" ;;
    esac
done
FRAZIL_REQUIRE_POSTGRES=1 scripts/side_by_side.sh "$one" "$other" "$python" -m pytest \
    -p no:cacheprovider --cov --cov-report= --durations=15 -m "not soak"
failed=$?
"$python" -m coverage combine -q && "$python" -m coverage report --skip-covered
exit "$failed"
