#!/bin/sh
# Makes one virtual environment from a pinned requirements file: environment.sh FOLDER REQUIREMENTS
set -eu
folder=$1
requirements=$2
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Frazil needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2
    exit 1
}
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
"$folder/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r "$requirements"
"$folder/bin/python" -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
cp "$requirements" "$folder/.ready"
