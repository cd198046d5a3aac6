#!/bin/sh
# Gets the engines that only `make interop` needs, in an environment of their own, and the server Nessie:
#   engines.sh FOLDER PYTHON-OF-SPARK
# What cannot be had is said and left out; the tests that need it are skipped then.
set -u
folder=$1
spark=$2
nessie=0.99.0

# One process after another: two test runs may be started at once.
if [ "${FRAZIL_ENGINES_LOCKED:-}" != 1 ] && command -v flock >/dev/null 2>&1; then
    FRAZIL_ENGINES_LOCKED=1 exec flock "$(dirname "$0")" "$0" "$@"
fi

packages() {
    [ -x "$folder/bin/python" ] || "$spark" -m venv "$folder" || return 1
    cmp -s requirements/engines.txt "$folder/.ready" && return 0
    "$spark" -m uv pip install -q --python "$folder/bin/python" --require-hashes \
        -r requirements/engines.txt 2>/dev/null ||
        "$folder/bin/python" -m pip install -q --disable-pip-version-check --no-compile \
            --require-hashes -r requirements/engines.txt || return 1
    cp requirements/engines.txt "$folder/.ready"
}

# Ivy comes with PySpark. Spark's own Java runs it, which knows this machine's certificates.
server() {
    [ -f "$folder/nessie-$nessie.jar" ] && return 0
    cat >"$folder/ivy.xml" <<END
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="frazil" module="interop"/>
  <dependencies>
    <dependency org="org.projectnessie.nessie" name="nessie-quarkus" rev="$nessie" transitive="false">
      <artifact name="nessie-quarkus" type="jar" ext="jar" m:classifier="runner"/>
    </dependency>
  </dependencies>
</ivy-module>
END
    ivy=$("$spark" -c 'import glob, os, pyspark; print(glob.glob(os.path.dirname(pyspark.__file__) + "/jars/ivy-*.jar")[0])') &&
        "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$ivy" -ivy "$folder/ivy.xml" \
            -cache "$folder/ivy" -retrieve "$folder/got/[artifact]-[revision].[ext]" >"$folder/ivy.log" 2>&1 &&
        mv "$folder/got/nessie-quarkus-$nessie.jar" "$folder/nessie-$nessie.jar" && rm -rf "$folder/ivy" "$folder/got"
}

if ! packages; then
    echo "ClickHouse, Daft and Nessie are left out: the packages of requirements/engines.txt cannot be had" >&2
    exit 0
fi
if ! server; then
    tail -n 3 "$folder/ivy.log" >&2 2>/dev/null
    echo "Nessie is left out: org.projectnessie.nessie:nessie-quarkus:$nessie cannot be had" >&2
fi
