"""Makes, restores and checks the repository of an agent session. This script runs inside a site.

    python3 repository.py make FOLDER PROGRAM...    create the repository in FOLDER, if the programs are installed
    python3 repository.py restore FOLDER    undo every change in it
    python3 repository.py check FOLDER DIGEST    end with code 1 if its files or its history differ

The script needs only Python 3.9 and git. Every name, date and line comes from `SEED`, so the digest is the same on
every machine. The plug-in sets git's variables.
"""

import hashlib
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

SEED = 20261201
PACKAGES, MODULES = 40, 50
AREAS, COMPONENTS = 16, 40
TOPICS, PAGES = 20, 15
SOURCES = 8
TESTS, CASES = 12, 20
COMMITS, CHANGED = 30, 15
STARTED = 1_750_000_000
"""The date of the first commit, in seconds since 1970. The next ones follow a day apart."""
MODIFIED = 1_767_225_600
"""The modification time of every file. It is older than git's index, so git does not read unchanged files again."""
_NOUNS = (
    "anchor", "barge", "berth", "buoy", "cable", "cargo", "channel", "chart", "crane", "crew", "deck", "dock",
    "ferry", "fleet", "gauge", "harbour", "hatch", "hull", "jetty", "keel", "ladder", "lantern", "load", "lock",
    "mast", "mooring", "pier", "pilot", "port", "quay", "raft", "rope", "rudder", "sail", "scale", "sluice", "tide",
    "tug", "vessel", "wharf",
)  # fmt: skip
_VERBS = (
    "assign", "balance", "check", "clear", "count", "find", "grade", "inspect", "lift", "list", "load", "measure",
    "merge", "move", "order", "parse", "plan", "read", "rent", "repair", "report", "route", "sort", "weigh",
)  # fmt: skip
_BASE = '''"""Helpers that every part of the harbour uses."""

LIMIT = 9973


def clamp(value, limit=LIMIT):
    """Return a value between 0 and a limit."""
    return max(0, min(value, limit))


def checksum(values):
    """Return one number for a list of numbers."""
    total = 0
    for value in values:
        total = (total * 31 + value) % LIMIT
    return total
'''
_FORMAT = """'use strict';

function formatWeight(grams) {
  if (grams >= 1000) {
    return `${(grams / 1000).toFixed(1)} kg`;
  }
  return `${grams} g`;
}

module.exports = { formatWeight };
"""
_LINT = """'use strict';

const fs = require('fs');
const path = require('path');
const vm = require('vm');

let files = 0;
let problems = 0;

function check(file) {
  const source = fs.readFileSync(file, 'utf8');
  files += 1;
  new vm.Script(`(function (module, require) {${source}})`, { filename: file });
  source.split('\\n').forEach((line, number) => {
    if (line.length > 100 || /\\t| $|\\bvar\\b/.test(line)) {
      problems += 1;
      console.log(`${file}:${number + 1}: ${line}`);
    }
  });
}

function walk(folder) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const place = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      walk(place);
    } else if (entry.name.endsWith('.js')) {
      check(place);
    }
  }
}

walk(path.join(__dirname, '..', 'web'));
console.log(`${files} files, ${problems} problems`);
process.exitCode = problems > 0 ? 1 : 0;
"""
_MAKEFILE = """CC = cc
CFLAGS = -std=c99 -O1 -Wall
OBJECTS = main.o %s

harbour: $(OBJECTS)
\t$(CC) $(CFLAGS) -o $@ $(OBJECTS)

$(OBJECTS): harbour.h

clean:
\trm -f harbour $(OBJECTS)
"""
_MAIN = """#include "harbour.h"

#include <stdio.h>

int main(void)
{
    unsigned value = 1;

%s
    printf("%%u\\n", value);
    return 0;
}
"""


class Words:
    """Words and numbers from a seed. `random` guarantees its sequence for `Random.random` alone."""

    def __init__(self, seed: int) -> None:
        """Start the sequence of a seed."""
        self._random = random.Random(seed)  # noqa: S311 - not a secret

    def number(self, below: int) -> int:
        """Return a number from 0 to below `below`."""
        return int(self._random.random() * below)

    def noun(self) -> str:
        """Return a noun."""
        return _NOUNS[self.number(len(_NOUNS))]

    def verb(self) -> str:
        """Return a verb."""
        return _VERBS[self.number(len(_VERBS))]

    def sentence(self) -> str:
        """Return a sentence about a harbour."""
        return f"The {self.noun()} can {self.verb()} the {self.noun()} before the {self.noun()}."


def contents(words: Words) -> dict[str, str]:
    """Return the text of each file, by its path."""
    files = {
        ".gitignore": "__pycache__/\n*.o\n/native/harbour\n",
        "README.md": "# Harbour\n\nAn artificial project in Python, C and JavaScript.\n",
        "src/harbour/__init__.py": "",
        "src/harbour/base.py": _BASE,
        "web/format.js": _FORMAT,
        "tools/lint.js": _LINT,
    }
    constants: dict[str, list[int]] = {}
    for package in range(PACKAGES):
        folder = f"src/harbour/p{package:02}_{words.noun()}"
        files[f"{folder}/__init__.py"] = ""
        for module in range(MODULES):
            path = f"{folder}/m{module:02}_{words.noun()}.py"
            files[path], constants[path] = _python(words)
    for area in range(AREAS):
        folder = f"web/a{area:02}_{words.noun()}"
        for component in range(COMPONENTS):
            files[f"{folder}/c{component:02}_{words.noun()}.js"] = _javascript(words)
    for topic in range(TOPICS):
        folder = f"docs/t{topic:02}-{words.noun()}"
        for page in range(PAGES):
            lines = [words.sentence() for _ in range(10 + words.number(30))]
            files[f"{folder}/{page:02}-{words.noun()}.md"] = f"# The {words.noun()}\n\n" + "\n".join(lines) + "\n"
    files.update(_native(words))
    files.update(_tests(words, constants))
    return files


def _python(words: Words) -> tuple[str, list[int]]:
    """Return a module, and the constant of each of its functions."""
    constants = [1 + words.number(900) for _ in range(2 + words.number(5))]
    lines = [f'"""{words.sentence()}"""', "", "from harbour.base import checksum, clamp"]
    for number, constant in enumerate(constants):
        name, other = words.noun(), words.noun()
        lines += [
            "", "", f"def {words.verb()}_{name}_{number}({name}, limit={constant}):",
            f'    """{words.sentence()}"""',
            f"    {other}s = [clamp({name} + step, limit) for step in range({3 + words.number(9)})]",
            f"    if not {other}s:",
            f'        raise ValueError("there is no {other}")',
            f"    return checksum({other}s)",
        ]  # fmt: skip
    lines += ["", "", f"LIMITS = {constants!r}"]
    return "\n".join(lines) + "\n", constants


def _javascript(words: Words) -> str:
    lines, names = ["'use strict';", "", f"// {words.sentence()}"], []
    for number in range(2 + words.number(4)):
        noun = words.noun()
        names.append(f"{words.verb()}{words.noun().capitalize()}{number}")
        lines += [
            "", f"function {names[-1]}({noun}) {{",
            f"  const parts = String({noun}).split('').map((each) => each.charCodeAt(0));",
            f"  return parts.reduce((total, each) => (total * {3 + words.number(90)} + each) % 9973, 7);",
            "}",
        ]  # fmt: skip
    lines += ["", f"module.exports = {{ {', '.join(names)} }};"]
    return "\n".join(lines) + "\n"


def _native(words: Words) -> dict[str, str]:
    """Return a small C program of several files."""
    parts = [f"part{number}" for number in range(SOURCES)]
    headers = ["#ifndef HARBOUR_H", "#define HARBOUR_H", ""]
    headers += [f"unsigned {part}(unsigned value);" for part in parts] + ["", "#endif"]
    calls = "\n".join(f"    value = {part}(value);" for part in parts)
    files = {
        "native/Makefile": _MAKEFILE % " ".join(f"{part}.o" for part in parts),
        "native/harbour.h": "\n".join(headers) + "\n",
        "native/main.c": _MAIN % calls,
    }
    for part in parts:
        lines = [f"/* {words.sentence()} */", '#include "harbour.h"', ""]
        names = [f"{words.verb()}_{words.noun()}_{number}" for number in range(20)]
        for name in names:
            lines += [
                f"static unsigned {name}(unsigned value)", "{",
                f"    for (unsigned step = 0; step < {3 + words.number(20)}; step++)",
                f"        value = value * {3 + words.number(900)}u + (value >> {1 + words.number(15)}) + step;",
                "    return value;", "}", "",
            ]  # fmt: skip
        lines += [f"unsigned {part}(unsigned value)", "{", *(f"    value ^= {name}(value);" for name in names)]
        files[f"native/{part}.c"] = "\n".join([*lines, "    return value;", "}"]) + "\n"
    return files


def _tests(words: Words, constants: Mapping[str, list[int]]) -> dict[str, str]:
    """Return tests of the Python modules, which know every module's constants."""
    files, paths = {"tests/__init__.py": ""}, sorted(constants)
    for number in range(TESTS):
        lines = ["import importlib", "import sys", "import unittest", "from pathlib import Path", ""]
        lines += ['sys.path.insert(0, str(Path(__file__).parent.parent / "src"))', "", ""]
        lines += [f"class Test{words.noun().capitalize()}(unittest.TestCase):"]
        for case in range(CASES):
            path = paths[words.number(len(paths))]
            module = path[len("src/") : -len(".py")].replace("/", ".")
            lines += [
                f"    def test_{words.verb()}_{case}(self):",
                f'        module = importlib.import_module("{module}")',
                f"        self.assertEqual(module.LIMITS, {constants[path]!r})",
                "        for name in sorted(vars(module)):",
                '            if name[-1].isdigit():',
                "                self.assertLess(getattr(module, name)(5), 9973)", "",
            ]  # fmt: skip
        files[f"tests/test_{number:02}_{words.noun()}.py"] = "\n".join(lines)
    return files


def history(words: Words, files: dict[str, str]) -> Iterator[bytes]:
    """Yield commits for git-fast-import(1): all files, then changes of some. ``files`` changes too."""
    changeable = sorted(path for path in files if path.startswith(("src/harbour/p", "docs/")))
    changed = sorted(files)
    for commit in range(COMMITS):
        message = f"{words.verb().capitalize()} the {words.noun()}\n\n{words.sentence()}\n".encode()
        by = f"Harbour <harbour@example.org> {STARTED + 86400 * commit} +0000"
        yield f"commit refs/heads/main\nauthor {by}\ncommitter {by}\ndata {len(message)}\n".encode() + message
        for path in changed:
            data = files[path].encode()
            yield f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n"
        changed = sorted({changeable[words.number(len(changeable))] for _ in range(CHANGED)})
        for path in changed:
            files[path] += f"# Revision {commit + 1}: {words.sentence()}\n"


def git(*arguments: str, stdin: bytes = b"") -> str:
    """Return what git prints. Raises CalledProcessError if it fails."""
    done = subprocess.run(["git", *arguments], input=stdin, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


def make(folder: Path) -> None:
    """Create the repository in a folder, with one commit after the other."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    git("init", "--quiet", "--initial-branch=main")
    git("config", "gc.auto", "0")
    git("config", "core.abbrev", "12")
    words = Words(SEED)
    git("fast-import", "--quiet", stdin=b"".join(history(words, contents(words))))
    restore(folder)


def restore(folder: Path) -> None:
    """Undo every change, and refresh git's index."""
    os.chdir(folder)
    git("reset", "--quiet", "--hard", "main")
    git("clean", "--quiet", "-fdx")
    for path in _paths():
        if path.stat().st_mtime != MODIFIED:
            os.utime(path, (MODIFIED, MODIFIED))
    git("update-index", "-q", "--refresh")


def digest(folder: Path) -> str:
    """Return the SHA-256 of all paths, permissions of the owner, contents, and the commit of HEAD."""
    os.chdir(folder)
    total = hashlib.sha256(git("rev-parse", "HEAD").encode())
    for path in _paths():
        data = path.read_bytes()
        total.update(f"\n{path} {path.stat().st_mode >> 6 & 7} {len(data)}\n".encode() + data)
    return total.hexdigest()


def _paths() -> list[Path]:
    """Return all files below the current folder outside of ``.git``, sorted."""
    paths = []
    for folder, folders, names in os.walk("."):
        if folder == ".":
            folders.remove(".git")
        paths += [Path(folder, name) for name in names]
    return sorted(paths)


def main(action: str, folder: str, *words: str) -> None:
    """Do one of the three actions."""
    try:
        if action == "make":
            if missing := [program for program in words if shutil.which(program) is None]:
                sys.exit(f"the session needs programs that are not installed: {', '.join(missing)}")
            make(Path(folder))
        elif action == "restore":
            restore(Path(folder))
        elif (actual := digest(Path(folder))) != words[0]:
            sys.exit(f"the repository is not as it was made: its digest is {actual}, not {words[0]}")
    except FileNotFoundError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd[:2])} exited with code {error.returncode}")


if __name__ == "__main__":
    main(*sys.argv[1:])
