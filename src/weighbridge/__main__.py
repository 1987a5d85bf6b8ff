"""The entry point: ``weighbridge`` and ``python -m weighbridge``."""

import gc
import sys


def main() -> None:
    """Run the command line."""
    gc.set_threshold(200_000)  # a command makes little garbage, and looking for it took 5% of the time
    if sys.argv[1:] == ["--version"]:  # scripts use this: it needs no libraries of the commands
        from weighbridge.cli.version import version_text

        print(version_text())
        return
    try:
        from weighbridge.cli.app import main as run

        run()
    except KeyboardInterrupt:  # during imports; commands have their own answer
        sys.exit(130)


if __name__ == "__main__":
    main()
