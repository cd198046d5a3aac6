#!/bin/sh
# Two pytest processes side by side; the second's output comes after the first's.
#   side_by_side.sh "paths of one" "paths of the other" command ...
set -u
one=$1 other=$2
shift 2
log=$(mktemp)
trap 'rm -f "$log"' EXIT

rm -f .coverage .coverage.one .coverage.other
# shellcheck disable=SC2086
COVERAGE_FILE=.coverage.other "$@" $other >"$log" 2>&1 &
of_other=$!
# shellcheck disable=SC2086
COVERAGE_FILE=.coverage.one "$@" $one
failed=$?
wait "$of_other" || failed=1
cat "$log"
exit "$failed"
