"""What the Java workloads share: the virtual machine's flags and where the jars of a Maven project are."""

JRE = ("openjdk-17-jre-headless",)
"""The Debian package of the virtual machine."""


def java(project: str, heap: int, *properties: str) -> tuple[str, ...]:
    """The beginning of a command line: a heap of ``heap`` bytes from the start, system properties as KEY=VALUE.

    One collector thread at most and no files of its own, so that little but the program is measured; IPv4 only.
    """
    flags = ("-server", f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:-UsePerfData")
    options = (f"-D{each}" for each in ("java.net.preferIPv4Stack=true", *properties))
    return ("java", *flags, *options, "-cp", f"/opt/{project}/*")
