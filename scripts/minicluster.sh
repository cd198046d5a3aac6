#!/bin/sh
# Gets the server of HDFS that `make catalogs` tests with: minicluster.sh FOLDER PYTHON-OF-SPARK
# Where it cannot be had that is said, and its tests are skipped.
set -u
folder=$1
spark=$2
version=3.4.2

[ -f "$folder/hadoop-client-minicluster-$version.jar" ] && exit 0
mkdir -p "$folder/minicluster"
cat >"$folder/minicluster/ivy.xml" <<END_OF_FILE
<ivy-module version="2.0">
  <info organisation="frazil" module="catalogs"/>
  <dependencies>
    <dependency org="org.apache.hadoop" name="hadoop-client-minicluster" rev="$version" transitive="false">
      <artifact name="hadoop-client-minicluster" type="jar" ext="jar"/>
    </dependency>
  </dependencies>
</ivy-module>
END_OF_FILE
# Ivy comes with PySpark. Spark's own Java runs it, which knows this machine's certificates.
ivy=$("$spark" -c 'import glob, os, pyspark; print(glob.glob(os.path.dirname(pyspark.__file__) + "/jars/ivy-*.jar")[0])') &&
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$ivy" -ivy "$folder/minicluster/ivy.xml" \
        -cache "$folder/minicluster/ivy" -retrieve "$folder/minicluster/[artifact]-[revision].[ext]" \
        >"$folder/minicluster/ivy.log" 2>&1 &&
    mv "$folder/minicluster/hadoop-client-minicluster-$version.jar" "$folder" &&
    rm -rf "$folder/minicluster" && exit 0
tail -n 3 "$folder/minicluster/ivy.log" >&2
echo "HDFS is left out: org.apache.hadoop:hadoop-client-minicluster:$version cannot be had" >&2
