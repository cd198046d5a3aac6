#!/bin/sh
# Prints the folder of PostgreSQL's server programs; installs them first when that is allowed.
set -eu
find_server() {
    for folder in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV) $(dirname "$(command -v initdb 2>/dev/null || echo /nonexistent/x)"); do
        [ -x "$folder/initdb" ] && [ -x "$folder/pg_ctl" ] && { echo "$folder"; return 0; }
    done
    return 1
}
find_server && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql; } >/dev/null 2>&1
    find_server && exit 0
fi
echo "the catalog tests need a PostgreSQL server: install it (Debian: apt-get install postgresql)" >&2
exit 1
