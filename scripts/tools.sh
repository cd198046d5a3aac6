#!/bin/sh
# Makes the environment of `make interop-tools`: dbt, SQLMesh and IPython beside Spark and Frazil.
#   tools.sh FOLDER PYTHON-WITH-UV
set -u
folder=$1
python=$2

[ -x "$folder/bin/python" ] || "$python" -m venv "$folder" || exit 1
cmp -s requirements/tools.txt "$folder/.ready" && exit 0

pip="$folder/bin/python -m pip install -q --disable-pip-version-check --no-compile"
if ! "$python" -m uv pip install -q --python "$folder/bin/python" --require-hashes \
    --config-settings-package "pyspark:--build-option=--compression=stored" \
    -r requirements/tools.txt 2>/dev/null &&
    ! $pip --require-hashes -r requirements/tools.txt; then
    echo "the tools are not tested: the packages of requirements/tools.txt cannot be had" >&2
    exit 1
fi
# Each build leaves 2 GB of PySpark's sources in uv's cache that no later one uses.
"$python" -m uv cache prune -q 2>/dev/null || :
$pip --no-deps --no-build-isolation -e . && cp requirements/tools.txt "$folder/.ready"
