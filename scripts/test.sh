#!/bin/sh
# Runs a circle of the tests in processes side by side: test.sh CIRCLE [PYTHON] [PATH ...]
#   CIRCLE is `test`, `check` (what guards main besides), `ci` (both) or `soak`; see tests/ci_share.py.
set -eu
circle=$1
python=${2:-.venv/bin/python}
shift
[ $# = 0 ] || shift
case $circle in
    test) marks="not check and not soak" ;;
    check) marks="check and not soak" ;;
    ci) marks="not soak" ;;
    soak) marks=soak ;;
    *) echo "there is no circle $circle: test, check, ci or soak" >&2 && exit 2 ;;
esac
# The processes share the cores: threads that wait for each other would take their time.
export POLARS_MAX_THREADS=1
# Each process waits for Spark half of its time, so three keep two cores busy.
run() {
    "$python" -m pytest -n "${PROCESSES:-3}" --dist loadfile --durations=15 -m "$marks" "$@"
}
# A whole circle has its cases record what they run, and what none of them ran fails; `ci` is both circles on
# another Spark, which has not all of it.
if [ $# != 0 ] || [ "$circle" = ci ]; then
    run "$@"
    exit
fi
export FRAZIL_CIRCLES=".circles/$circle"
rm -rf "$FRAZIL_CIRCLES"
failed=0
run || failed=$?
"$python" scripts/cells.py --check "$circle" || failed=1
exit "$failed"
