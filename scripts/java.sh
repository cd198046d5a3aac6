#!/bin/sh
# Finds Java 17 or newer, or installs it with the system's package manager when that is allowed.
set -eu
new_enough() {
    command -v "$1" >/dev/null 2>&1 || return 1
    major=$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$major" ] && [ "$major" -ge 17 ]
}
[ -n "${JAVA_HOME:-}" ] && new_enough "$JAVA_HOME/bin/java" && exit 0
new_enough java && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless >/dev/null
    new_enough java && exit 0
fi
echo "Spark needs Java 17 or newer: install it (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)" >&2
exit 1
