"""Times a function in a fresh interpreter: python call.py MODULE FUNCTION PATH. It needs only the standard library.

PATH are the folders of modules. The first call is not counted. The time is the mean of as many calls as take a tenth
of a second, so that the clock's resolution does not matter.
"""

import os
import sys
import time
from importlib import import_module
from operator import attrgetter

ENOUGH_S = 0.1
PRINTED = "seconds_per_call="


def seconds_per_call(module: str, name: str) -> float:
    """Return the mean seconds of a call of ``module.name``."""
    function = attrgetter(name)(import_module(module))
    function()
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        took_s = time.perf_counter() - start
        if took_s >= ENOUGH_S:
            return took_s / calls
        calls *= 2


if __name__ == "__main__":
    sys.path[:] = sys.argv[3].split(os.pathsep)
    print(f"{PRINTED}{seconds_per_call(*sys.argv[1:3]):.9g}")
