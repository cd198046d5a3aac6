#!/bin/sh
# Gets the Hive metastores that only `make catalogs` needs, with the schemas of their databases:
#   metastores.sh FOLDER PYTHON-OF-SPARK
# What cannot be had is said and left out; the tests that need it are skipped then.
set -u
folder=$1
spark=$2

if [ "${FRAZIL_METASTORES_LOCKED:-}" != 1 ] && command -v flock >/dev/null 2>&1; then
    FRAZIL_METASTORES_LOCKED=1 exec flock "$(dirname "$0")" "$0" "$@"
fi
mkdir -p "$folder"
jars=$("$spark" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__) + "/jars")')

# Ivy comes with PySpark. Spark's own Java runs it, which knows this machine's certificates.
#   fetch ORGANISATION NAME REVISION TYPE [CLASSIFIER]
fetch() {
    classifier=${5:+"m:classifier=\"$5\""}
    cat >"$folder/ivy.xml" <<END_OF_MODULE
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="frazil" module="interop"/>
  <dependencies>
    <dependency org="$1" name="$2" rev="$3" transitive="false">
      <artifact name="$2" type="$4" ext="$4" $classifier/>
    </dependency>
  </dependencies>
</ivy-module>
END_OF_MODULE
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$jars"/ivy-*.jar -ivy "$folder/ivy.xml" -confs default \
        -cache "$folder/ivy" -retrieve "$folder/got/[artifact]-[revision].[ext]" >"$folder/ivy.log" 2>&1
}

#   metastore NAME REVISION
metastore() {
    [ -d "$folder/apache-hive-metastore-$2-bin" ] && return 0
    fetch org.apache.hive "$1" "$2" tar.gz bin &&
        tar xzf "$folder/got/$1-$2.tar.gz" -C "$folder" && return 0
    echo "Hive's metastore $2 is left out: org.apache.hive:$1:$2 cannot be had" >&2
}

#   jar ORGANISATION NAME REVISION
jar() {
    [ -f "$folder/$2-$3.jar" ] && return 0
    fetch "$1" "$2" "$3" jar && mv "$folder/got/$2-$3.jar" "$folder/" && return 0
    echo "Hive's metastores are left out: $1:$2:$3 cannot be had" >&2
    exit 0
}

# What a metastore needs and its archive has not: all that its module names, but for what Spark brings.
more() {
    [ -d "$folder/more" ] && return 0
    cat >"$folder/ivy.xml" <<END_OF_MODULE
<ivy-module version="2.0">
  <info organisation="frazil" module="metastore"/>
  <dependencies>
    <dependency org="org.apache.hive" name="hive-standalone-metastore-server" rev="$1" conf="default->default">
      <exclude org="org.apache.hadoop"/>
    </dependency>
    <exclude org="org.apache.zookeeper"/>
    <exclude org="com.google.cloud.bigdataoss"/>
    <exclude org="org.slf4j"/>
    <exclude org="org.apache.logging.log4j"/>
  </dependencies>
</ivy-module>
END_OF_MODULE
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$jars"/ivy-*.jar -ivy "$folder/ivy.xml" -confs default -types jar bundle \
        -cache "$folder/ivy" -retrieve "$folder/got/more/[artifact]-[revision].[ext]" >"$folder/ivy.log" 2>&1 &&
        rm -f "$folder"/got/more/hive-standalone-metastore-*.jar && mv "$folder/got/more" "$folder/more" && return 0
    echo "Hive's metastores are left out: what $1 needs cannot be had" >&2
    exit 0
}

# Java's client of Glue, beside whose catalog Frazil's is tested.
bundle=iceberg-aws-bundle-1.12.0.jar
[ -f "$folder/glue/$bundle" ] || { fetch org.apache.iceberg iceberg-aws-bundle 1.12.0 jar &&
    mkdir -p "$folder/glue" && mv "$folder/got/$bundle" "$folder/glue/"; } ||
    echo "Java's client of Glue is left out: org.apache.iceberg:iceberg-aws-bundle:1.12.0 cannot be had" >&2

# Of Hadoop Spark has all but what only a server of HDFS needs; a metastore asks for one class of that.
jar org.apache.hadoop hadoop-hdfs 3.3.6
jar javax.servlet javax.servlet-api 3.1.0
jar commons-collections commons-collections 3.2.2
jar org.apache.httpcomponents httpclient 4.5.14
jar org.apache.httpcomponents httpcore 4.4.16
more 4.0.1
# A database in which Hive compares what a commit expects, which it cannot in Derby.
driver=postgresql-42.7.7.jar
[ -f "$folder/$driver" ] || { fetch org.postgresql postgresql 42.7.7 jar && mv "$folder/got/$driver" "$folder/"; } ||
    echo "Hive's metastore with PostgreSQL is left out: org.postgresql:postgresql:42.7.7 cannot be had" >&2
metastore hive-standalone-metastore-server 4.0.1
metastore hive-standalone-metastore 3.1.3
rm -rf "$folder/ivy" "$folder/got"
