#!/bin/sh
# The comparison with other engines in two processes side by side, each with a session of its own.
set -u
python=${1:-.venv41/bin/python}
one="interop/test_interop_written_by_frazil.py interop/test_interop_written_by_java.py
interop/test_interop_written_by_pyiceberg.py interop/test_interop_entries.py
interop/test_interop_evolution.py interop/test_interop_compaction.py
interop/test_interop_histories.py interop/test_interop_metadata_tables.py
interop/test_interop_row_commands.py interop/test_interop_turns.py"
one=$(echo $one)
other=""
for file in interop/test_*.py; do
    case " $one " in
        *" $file "*) ;;
        *) other="$other $file" ;;
    esac
done
scripts/side_by_side.sh "$one" "$other" -- "$python" -m pytest \
    -p no:cacheprovider --durations=15 -m "not soak"
