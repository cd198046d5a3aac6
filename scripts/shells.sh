#!/bin/sh
# Finds the shells that complete words of the command line, or installs them when that is allowed.
set -eu
missing() {
    for shell in fish zsh; do
        command -v "$shell" >/dev/null 2>&1 || printf '%s ' "$shell"
    done
}
[ -n "$(missing)" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    # The lists of packages may be old or partly unreachable.
    apt-get update -qq >&2 || true
    # shellcheck disable=SC2046
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(missing) >/dev/null 2>&1 || true
fi
[ -n "$(missing)" ] || exit 0
echo "their completion is not tested: install $(missing)(Debian: apt-get install fish zsh)" >&2
exit 1
