#!/bin/sh
# Gets MIT's KDC and a client of Kerberos, with which `make catalogs` tests Hive metastores:
#   kerberos.sh FOLDER PYTHON
# What cannot be had is said and left out; the tests that need it are skipped then.
set -u
folder=$1
python=$2

has() {
    for name in "$@"; do
        PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v "$name" >/dev/null 2>&1 || return 1
    done
}
if ! has krb5kdc kdb5_util kadmin.local kinit krb5-config cc &&
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    # The lists of packages may be old or partly unreachable.
    apt-get update -qq >&2 || true
    # The KDC of the system does not start: policy and realm are left as they are.
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        krb5-kdc krb5-admin-server krb5-user libkrb5-dev gcc libc6-dev >/dev/null 2>&1
fi
has krb5kdc kdb5_util kadmin.local kinit ||
    echo "Kerberos is left out: no KDC is installed (Debian: apt-get install krb5-kdc krb5-admin-server krb5-user)" >&2
cmp -s requirements/kerberos.txt "$folder/.ready" && exit 0
# The client is built from its sources, so no other environment has it.
has krb5-config cc &&
    rm -rf "$folder" &&
    "$python" -m pip install -q --disable-pip-version-check --use-pep517 --no-deps --require-hashes \
        --target "$folder" -r requirements/kerberos.txt &&
    cp requirements/kerberos.txt "$folder/.ready" && exit 0
echo "Kerberos is left out: pure-sasl and kerberos cannot be built (Debian: apt-get install libkrb5-dev gcc)" >&2
