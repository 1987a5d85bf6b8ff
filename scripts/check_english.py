#!/usr/bin/env python3
"""Find phrases that a native speaker would not write, in documentation, docstrings, comments and messages.

    scripts/check_english.py PATH...    print every finding in these files or folders
    scripts/check_english.py            check every file; exit with 1 if one has too many findings

A finding is a place to look at, not a verdict: "may", "where" and "beside" each have right uses. A file is allowed
ALLOWED findings and PER_1000 per 1,000 lines.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CHECKED = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "monitoring", "src")
LONGEST_SENTENCE = 30
ALLOWED, PER_1000 = 2, 15

RULES = (
    ("reports, prints, shows, says; name who does it", r"\b(?:tells?|told)\b(?! \w+ (?:\w+ )?apart)"),
    ("next to, as well as, in addition to, while ... is running", r"\bbeside\b"),
    ("name the actor", r"\b(?:whoever|whomever|somebody|nobody|anybody|someone|no one)\b"),
    ("if, when",
     r"\b[Ww]here (?:it|they|that|there|one|an?|no|the|its|this|these|what|neither|nobody|others?|both|all|none|some"
     r"|any|each|nothing|more|only)\b"),
    ("because; a new sentence",
     r", as (?:it|they|one|what|that|its|no|an?|there|each|all|both|nothing|this|these)\b"),
    ("can (ability), might (chance), is allowed to (permission)", r"\bmay\b"),
    ("is not a; belongs to, has",
     r"\b(?:is|are|was|were) no \w+ (?:of|that)\b|\b(?:is|are|was|were) of (?!interest)"),
    ("a noun: the parts that, anything that, the value that",
     r"(?:^|[.;:(] ?|\b(?:of|by|in|for|with|from|and|than|as|on|to) )[Ww]hat (?:is|are|was|has|have|it|they|one"
     r"|an?|the|no|nobody|cannot|can|does|do|takes?|others?|lies|stands|costs?|differs?|remains|was)\b(?!.*\?)"),
    ("repeat the noun", r"\b(?:that|those|the one|the ones) of\b"),
    ("plain order; a second sentence", r"\b(?:so many|so much|from what|by which|in turns|each in its own)\b"),
    ("causes, creates, lets; name the action",
     r"\b(?:has|have|had) (?:an?|the|its|them|it|all|both) \w+(?: \w+)? (?:be |do|hold|make|run|say|start|show|give"
     r"|take)\b"),
    ("again, separated, leftovers, location, also, is missing, started",
     r"\b(?:anew|parted|leavings|whereabouts|wherein|thereby|likewise|hitherto|amiss|lacks?|lacking|begun|afresh"
     r"|in good order|at hand)\b"),
    ("needs, requires", r"\b[Tt]akes root\b"),
    ("3%, 4,820", r"\d %(?!\w)|\b\d{1,3} \d{3}\b"),
    ("a sentence with its noun", r"^(?:Of|Likewise|With it|That of|Those of|None where|Empty where|\"\" where)\b"),
    ("a word of docs/understand/words.md", r"\b(?:untrusted|A/A arm|native-again|headline|rehearsal)\b"),
)  # fmt: skip
COMPILED = [(re.compile(pattern), instead) for instead, pattern in RULES]


class Finding(NamedTuple):
    """A phrase: its line (0: not known), the text around it, and what to write instead."""

    line: int
    text: str
    instead: str


def lines_of_prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the prose of a Markdown file, or of a module's strings and comments."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        fenced = False
        for number, line in enumerate(source.splitlines(), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced and not line.startswith("    "):
                yield number, re.sub(r"`[^`]*`|<[^>]*>|\]\([^)]*\)", "", line)
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
        elif token.type == tokenize.STRING and " " in token.string:
            body = re.sub(r"^\w*(?:\"\"\"|'''|\"|')|(?:\"\"\"|'''|\"|')$", "", token.string)
            for number, line in enumerate(body.splitlines(), token.start[0]):
                if len(line.split()) > 2:
                    yield number, re.sub(r"`[^`]*`|\{[^}]*\}", "", line.strip())


def paragraphs(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of the paragraphs of a Markdown file, or of the docstrings of a module."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        source = re.sub(r"```.*?```|<!-- generated:.*?<!-- end -->", "", source, flags=re.DOTALL)
        for text in re.split(r"\n\s*\n|\n(?=[-*|#\d>])", source):
            if "|" not in text:
                yield 0, text
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text


def findings(path: Path) -> Iterator[Finding]:
    """Yield the findings of one file: phrases, then sentences of more than LONGEST_SENTENCE words."""
    for number, line in lines_of_prose(path):
        for pattern, instead in COMPILED:
            if match := pattern.search(line):
                yield Finding(number, line[max(0, match.start() - 40) : match.end() + 50].strip(), instead)
    for number, text in paragraphs(path):
        for sentence in re.split(r"(?<=[.!?:])\s", " ".join(text.split())):
            if (words := len(sentence.split())) > LONGEST_SENTENCE:
                yield Finding(number, sentence[:110], f"{words} words; at most {LONGEST_SENTENCE} in a sentence")


def files(paths: list[Path]) -> Iterator[Path]:
    """Yield the Markdown files and modules below some paths, sorted."""
    for path in paths:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (each for each in found if each.suffix in (".md", ".py") and "node_modules" not in each.parts)


def allowed(path: Path) -> int:
    """Return how many findings a file is allowed to have."""
    return ALLOWED + path.read_text(encoding="utf-8").count("\n") * PER_1000 // 1000


def main(words: list[str]) -> int:
    """Print findings, or check every file. Return the exit code."""
    if words:
        for path in files([*map(Path, words)]):
            for each in findings(path):
                print(f"{path}:{each.line}: …{each.text}…  ({each.instead})")
        return 0
    counts = {path: len([*findings(path)]) for path in files([ROOT / each for each in CHECKED])}
    worse = {path: count for path, count in counts.items() if count > allowed(path)}
    for path, count in worse.items():
        name = path.relative_to(ROOT)
        print(f"{name}: {count} unidiomatic phrases, at most {allowed(path)}: scripts/check_english.py {name}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
