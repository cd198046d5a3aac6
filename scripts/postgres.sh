#!/bin/sh
# Prints the folder of PostgreSQL's server programs; installs them first when that is allowed.
set -eu
find_server() {
    on_path=$(command -v initdb 2>/dev/null || true)
    for folder in \
        $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV) \
        $(ls -d /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin 2>/dev/null | sort -rV) \
        ${on_path:+"$(dirname "$on_path")"}; do
        [ -x "$folder/initdb" ] && [ -x "$folder/pg_ctl" ] && { echo "$folder"; return 0; }
    done
    return 1
}
find_server && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    # The lists of packages may be old or partly unreachable.
    apt-get update -qq >&2 || true
    if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null 2>&1; then
        find_server && exit 0
    fi
fi
echo "the catalog tests need a PostgreSQL server: install it (Debian: apt-get install postgresql; macOS: brew install postgresql)" >&2
exit 1
