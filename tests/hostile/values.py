"""Hostile values for one place of a run's database, or of a JSON document in it."""

import json
from typing import Any

LIVE_RUN = "c0ffee0dd1e5"
"""The id of another run, which is alive while the commands are tried."""
DEAD_RUN = "deadbeef0123"
"""The id of a run that nothing is left of."""
VICTIM = "/srv/data"
"""A folder that no run owns."""


class BadText(bytes):
    """Bytes that SQLite stores as text although they are not UTF-8."""


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


TEXTS: dict[str, str] = {
    "absolute": VICTIM,
    "absolute-etc": "/etc",
    "root": "/",
    "relative": "../../../../srv/data",
    "from-cache": "../../../../../../srv/data",
    "parent": "..",
    "grandparent": "../..",
    "here": ".",
    "trailing": f"{DEAD_RUN}/../{LIVE_RUN}",
    "within": f"{DEAD_RUN}/../../../../srv/data",
    "live-run": LIVE_RUN,
    "live-run-site": f"{LIVE_RUN}/site",
    "live-run-upper": LIVE_RUN.upper(),
    "live-run-newline": f"{LIVE_RUN}\n",
    "dead-run": DEAD_RUN,
    "empty": "",
    "space": " ",
    "nul": "native\0/srv/data",
    "newline": "one\ntwo",
    "carriage-return": "one\r\rtwo",
    "workflow": "x\n::error file=a::b",
    "escape": "\x1b[2J\x1b]0;title\x07\x9b31m",
    "64-kib": "A" * 2**16,
    "300-letters": "b" * 300,
    "number": "17",
    "zero": "0",
    "negative": "-1",
    "huge": "9" * 400,
    "exponent": "1e999",
    "tiny": "5e-324",
    "not-a-number": "NaN",
    "infinity": "-Infinity",
    "hexadecimal": "0x10",
    "arabic-digits": "١٧",
    "json-object": "{}",
    "json-array": "[]",
    "json-null": "null",
    "json-true": "true",
    "json-text": '"text"',
    "json-other-key": '{"a": 1}',
    "json-deep": _nested(100_000),
    "json-nested": _nested(200),
    "json-nan": "[NaN]",
    "json-surrogate": '["\\ud800"]',
    "json-cut": '{"a": [1, ',
    "json-large": json.dumps(list(range(20_000))),
    "option": "--help",
    "ssh-option": f"-oProxyCommand=touch {VICTIM}/made",
    "shell": f"$(touch {VICTIM}/made); touch {VICTIM}/made",
    "markup": "[red]x[/blue][/]",
    "html": "</script><script>alert(1)</script>",
    "template": "{0}{x.__class__}%s%n{{ 7 * 7 }}",
    "yaml-tag": f"!!python/object/apply:os.system ['touch {VICTIM}/made']",
    "right-to-left": "\u202egpj.exe",
    "formula": "=cmd|' /C calc'!A0",
    "home": "~root/.bashrc",
    "url": "http://127.0.0.1:9/",
    "database": "run.sqlite",
    "native": "native",
    "other-arm": "netns",
    "other-kind": "docker",
    "glob": "*",
}
TYPES: dict[str, Any] = {
    "null": None,
    "integer": 17,
    "integer-zero": 0,
    "integer-negative": -1,
    "integer-largest": 2**63 - 1,
    "real-largest": 1.7e308,
    "real-smallest": 5e-324,
    "real-infinite": float("inf"),
    "blob": b"\0\xff\xfe/srv/data",
    "blob-empty": b"",
    "blob-64-kib": b"\xff" * 2**16,
    "bad-utf-8": BadText(b"\xff\xfe/srv\x80"),
    "cut-utf-8": BadText("täxt".encode()[:2]),
}
STORED: dict[str, Any] = {**TEXTS, **TYPES}
"""What a cell of a table may hold, by name."""

JSON: dict[str, Any] = {
    **{name: text for name, text in TEXTS.items() if not name.startswith("json-")},
    "null": None,
    "true": True,
    "integer": 17,
    "integer-zero": 0,
    "integer-negative": -1,
    "integer-huge": 10**400,
    "real": 1.5,
    "real-largest": 1.7e308,
    "real-nan": float("nan"),
    "real-infinite": float("inf"),
    "list": [],
    "list-of-texts": ["/srv/data", ".."],
    "object": {},
    "object-other": {"kind": "docker", "/srv/data": ["x"]},
    "nested": json.loads(_nested(100)),
    "surrogate": "\ud800",
}
"""What a place in a JSON document may hold, by name."""
