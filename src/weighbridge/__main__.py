"""The entry point: ``weighbridge`` and ``python -m weighbridge``."""

from weighbridge.cli.app import main

if __name__ == "__main__":
    main()
