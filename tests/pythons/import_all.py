"""Import every module of Weighbridge; what failed and what our own lines were warned of goes to standard error.

Run by the Python that is tried, with exit code 1 where anything was wrong. No module may have been compiled before:
the compiler warns once.
"""

import importlib
import pkgutil
import sys
import warnings
from pathlib import Path

import weighbridge

TOLD = (DeprecationWarning, PendingDeprecationWarning, SyntaxWarning)


def main() -> int:
    """Return the exit code."""
    source, wrong, modules = Path(weighbridge.__file__).parent, list[str](), 0
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for module in pkgutil.walk_packages(weighbridge.__path__, "weighbridge.", onerror=lambda _: None):
            if module.name.endswith("__main__"):  # it would run
                continue
            modules += 1
            try:
                importlib.import_module(module.name)
            except Exception as error:
                wrong.append(f"{module.name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
    wrong += [str(one) for one in warned if issubclass(one.category, TOLD) and source in Path(one.filename).parents]
    print(f"{modules} modules, {len(wrong)} faults")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
