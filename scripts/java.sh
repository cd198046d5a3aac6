#!/bin/sh
# Finds Java 17 or newer, or installs it with the system's package manager when that is allowed.
set -eu
advice="install it (Debian: apt-get install default-jre-headless; macOS: brew install openjdk@17)"
new_enough() {
    command -v "$1" >/dev/null 2>&1 || return 1
    major=$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$major" ] && [ "$major" -ge 17 ]
}
if [ -n "${JAVA_HOME:-}" ]; then
    # Spark takes this one, whatever the path holds.
    new_enough "$JAVA_HOME/bin/java" && exit 0
    echo "JAVA_HOME is $JAVA_HOME, and there is no Java 17 or newer: set it to one, or unset it" >&2
    exit 1
fi
new_enough java && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    # A release has one or two of these; the lists of packages may be old or partly unreachable.
    apt-get update -qq >&2 || true
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >/dev/null 2>&1 || continue
        new_enough java && exit 0
    done
fi
echo "Spark needs Java 17 or newer: $advice" >&2
exit 1
