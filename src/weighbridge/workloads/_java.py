"""The flags of the Java virtual machine, and the place of a Maven project's jars."""

JRE = ("openjdk-17-jre-headless",)
"""The Debian package of the virtual machine."""


def java(project: str, heap: int, *properties: str) -> tuple[str, ...]:
    """Return the beginning of a command line, with ``heap`` bytes from the start and system properties (KEY=VALUE).

    The virtual machine has at most one collector thread and writes no files, so that it disturbs the program little.
    It uses IPv4 only.
    """
    flags = ("-server", f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:-UsePerfData")
    options = (f"-D{each}" for each in ("java.net.preferIPv4Stack=true", *properties))
    return ("java", *flags, *options, "-cp", f"/opt/{project}/*")
