"""How a JVM runs that reads many tables of a few rows: to optimise costs more than it saves."""

JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    # The cache of this level is small: sweeping it took a tenth of the time.
    "-XX:ReservedCodeCacheSize=512m -XX:-MethodFlushing "
    "-XX:MetaspaceSize=256m"
)
