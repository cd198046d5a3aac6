#!/bin/sh
# One pytest process a group of paths, side by side; what the others say comes after the first's.
#   side_by_side.sh "paths of one" "paths of another" ... -- command ...
# The command finds the number of its group in GROUP.
set -u
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
count=0
while [ "$1" != -- ]; do
    count=$((count + 1))
    echo "$1" >"$logs/$count.paths"
    shift
done
shift

# The processes share the cores: threads that wait for each other would take their time.
export POLARS_MAX_THREADS=1
processes=""
for number in $(seq 2 "$count"); do
    # shellcheck disable=SC2046
    GROUP=$number "$@" $(cat "$logs/$number.paths") >"$logs/$number" 2>&1 &
    processes="$processes $!"
done
# shellcheck disable=SC2046
GROUP=1 "$@" $(cat "$logs/1.paths")
failed=$?
for process in $processes; do
    wait "$process" || failed=1
done
for number in $(seq 2 "$count"); do
    cat "$logs/$number"
done
exit "$failed"
