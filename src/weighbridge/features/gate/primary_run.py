"""The part of a run that a history compares, kept in the user's cache: to analyse a large run takes half a second.

A file of the cache is read only if no other user could have written it (`weighbridge.report.page_cache`), because
Python runs code that a pickled file names. Its name is a digest of the run's database and of this program.
"""

import contextlib
import os
import pickle
import zlib
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import weighbridge
from weighbridge.analysis.analyse import Depth
from weighbridge.analysis.judgement import family_of
from weighbridge.errors import RunDirectoryError
from weighbridge.features.gate.compared_run import ComparedRun, read_run
from weighbridge.report.page_cache import read_cached, write_cached
from weighbridge.store.run import RunStore


def pickled_primary_run(store: RunStore) -> bytes:
    """Return a run's primary costs and what their changes are computed from, for `primary_run`.

    A run that is being written is not cached. Raises RunDirectoryError if the run is damaged.
    """
    try:
        name = f"history/{sha256(_program() + store.file()).hexdigest()}.pickle"
    except RunDirectoryError:  # its log has later rows
        return _pickled(store)
    if cached := read_cached(name):
        return cached
    pickled = _pickled(store)
    write_cached(name, pickled)
    return pickled


def _pickled(store: RunStore) -> bytes:
    return zlib.compress(pickle.dumps(_only_primary(read_run(store, "", Depth.PRIMARY))), 1)


def primary_run(pickled: bytes, name: str) -> ComparedRun:
    """Return the run of `pickled_primary_run`. Raises RunDirectoryError if the file of the cache is damaged."""
    with contextlib.suppress(Exception):
        run = pickle.loads(zlib.decompress(pickled))  # noqa: S301 - made by this process, or read from a file of this user alone
        if isinstance(run, ComparedRun):
            return replace(run, name=name)
    raise RunDirectoryError(f"{name}: its file in the cache is damaged: remove the folder 'history' in the cache")


def _only_primary(run: ComparedRun) -> ComparedRun:
    """Return a run with the metrics that are judged together with primary ones, and trials without their values."""
    families = {family_of(each) for each in run.analysis.headlines}
    metrics = tuple(each for each in run.analysis.metrics if family_of(each) in families)
    trials = tuple(each._replace(values={}) for each in run.analysis.trials)
    context = replace(run.analysis.context, trials=trials, results={})
    analysis = replace(run.analysis, metrics=metrics, trials=trials, context=context)
    values = {each.metric_id: run.values[each.metric_id] for each in metrics if each.metric_id in run.values}
    return replace(run, analysis=analysis, values=values)


@cache
def _program() -> bytes:
    """Return bytes that differ between versions of this program, also while it is developed."""
    root = Path(weighbridge.__file__).parent
    digest = sha256()
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(each for each in files if each.endswith(".py")):
            about = os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - hundreds of files
            digest.update(f"{folder}/{name} {about.st_size} {about.st_mtime_ns}\n".encode())
    return digest.digest()
