#!/bin/sh
# The comparison with other engines in two processes, each with a session of its own: interop.sh CIRCLE [PYTHON]
#   CIRCLE is `check` (the part that guards main), `all` (everything but `soak`) or `soak`.
set -eu
case $1 in
    check) marks="not soak and not interop" ;;
    all) marks="not soak" ;;
    soak) marks=soak ;;
    *) echo "there is no circle $1: check, all or soak" >&2 && exit 2 ;;
esac
export POLARS_MAX_THREADS=1
exec "${2:-.venv41/bin/python}" -m pytest -n 2 --dist loadfile --durations=15 -m "$marks" interop/test_*.py
