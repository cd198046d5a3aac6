#!/bin/sh
# Makes one virtual environment from a pinned requirements file: environment.sh FOLDER REQUIREMENTS
set -eu
folder=$1
requirements=$2
find_python() {
    # A system's own Python is compiled for speed; one built with the defaults takes half as long again.
    for candidate in "${PYTHON:-/usr/bin/python3}" "${PYTHON:-python3}"; do
        "$candidate" -c 'import ensurepip, sqlite3, ssl, sys, venv; sys.exit(sys.version_info < (3, 11))' \
            2>/dev/null && { echo "$candidate"; return 0; }
    done
    echo "Frazil needs Python 3.11 or newer, with venv and pip; set PYTHON=/path/to/python3" >&2
    return 1
}
if [ ! -x "$folder/bin/python" ]; then
    python=$(find_python)
    "$python" -m venv "$folder"
fi
# Python compiles what is imported when it first is; a third of the time would go into the rest.
pip="$folder/bin/python -m pip install -q --disable-pip-version-check --no-compile"

install_by_uv() {
    $pip --require-hashes -r requirements/uv.txt &&
        # PySpark is built from its sources: to compress 450 MB only to unpack them takes half of that.
        "$folder/bin/python" -m uv pip install -q --python "$folder/bin/python" --require-hashes \
            --config-settings-package "pyspark:--build-option=--compression=stored" -r "$requirements" || return 1
    # Each build leaves 2 GB of PySpark's sources in uv's cache that no later one uses.
    "$folder/bin/python" -m uv cache prune -q || :
}
# uv takes a fifth of pip's time; it does not know pip's settings, with which pip may reach what it cannot.
install_by_uv 2>/dev/null || $pip --require-hashes -r "$requirements"
$pip --no-deps --no-build-isolation -e .
cp "$requirements" "$folder/.ready"
