"""Secrets from every place where a user can put one reach the programs, and are nowhere else.

What a program prints or writes itself is its own doing: these print nothing.
"""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from weighbridge.model.userland import Userland

from .machine import Machine
from .secrets_watch import Watch, watching, written_to
from .test_ci_gate import CI
from .test_supporting_services import saved_redis
from .test_weigh import CLIENT, COMPOSED, save_image
from .weighing import PROGRAM, Ended

CHECK = 'import os, sys; sys.exit(0 if all(os.environ.get(n, "").startswith("canary") for n in sys.argv[1:]) else 9)'
"""A program that fails without its secrets."""
SERVER = (
    "import os, socket, sys; names = ('API_TOKEN', 'DATABASE_URL', 'OWN'); "
    "assert all(os.environ[name].startswith('canary') for name in names); "
    "s = socket.create_server((sys.argv[1], int(sys.argv[2]))); [s.accept()[0].send(b'7') for _ in iter(int, 1)]"
)
STUDY = """
study: secrets
question: Where do they go?
userland: {{kind: host, folder: {folder}, env: {{DB_PASSWORD: {literal}, GIVEN: "${{secret:GIVEN}}"}}}}
baseline: native
aa: false
environments:
  native: {{kind: native}}
  netns: {{kind: netns, workloads: {{shop: {{server_env: {{
    API_TOKEN: {literal}, DATABASE_URL: 'canary://app:{literal}@db', OWN: "${{secret:GIVEN}}"}}}}}}}}
workloads:
  shop:
    kind: command
    server: [/usr/bin/python3, -c, {server}, "{{listen}}", "{{port}}"]
    server_env: {{API_TOKEN: {literal}, DATABASE_URL: 'canary://app:{literal}@db', OWN: "${{secret:GIVEN}}"}}
    client: [/usr/bin/python3, -c, {client}, "{{address}}", "{{port}}"]
    check: [/usr/bin/python3, -c, {check}, DB_PASSWORD, GIVEN]
repetitions: {{blocks: 2}}
"""


class Caller:
    """Calls the program in a folder, and keeps all that it printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed = ""

    def __call__(self, *words: object, code: int | None = 0, env: Mapping[str, str] | None = None) -> Ended:
        return self.program(*PROGRAM, *words, code=code, env=env)

    def program(self, *words: object, code: int | None = 0, env: Mapping[str, str] | None = None) -> Ended:
        done = subprocess.run(
            [*map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "XDG_STATE_HOME": str(self.folder / "state"), **(env or {})},
        )  # fmt: skip
        self.printed += done.stdout + done.stderr
        assert code in (done.returncode, None), done.stdout + done.stderr
        return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def call(tmp_path: Path) -> Caller:
    return Caller(tmp_path)


@contextmanager
def nowhere(call: Caller, *canaries: str, own: tuple[bytes, ...] = ()) -> Iterator[Watch]:
    """Check that the secrets are in no command line, file or message afterwards. ``own``: programs that had them."""
    with watching(*canaries) as watch:
        yield watch
    assert {words for words in watch.command_lines if not words.startswith(own or b"\0")} == set()
    assert watch.files_with_it(written_to(call.folder)) == []
    assert not [each for each in canaries if each in call.printed]


def canary() -> str:
    return f"canary{secrets.token_hex(12)}"


def reported(call: Caller, run: str) -> None:
    """Show a run in every way that there is."""
    for words in (("--json",), ("--markdown",), ("--all", "--html", "page.html")):
        call("report", run, *words)
    call("export", run, "--csv", "tables")
    call("history", ".", "--html", "history.html")


def test_variables_of_a_program_of_this_machine(call: Caller, tmp_path: Path):
    token = canary()
    words = ("--in", "netns", "--blocks", "2", "--env", "TOKEN", "--", "python3", "-c", CHECK, "TOKEN")
    env = {"TOKEN": token}
    with nowhere(call, token):
        call("weigh", "--out", "run", *words, env=env)
        assert "TOKEN" in call("run", "--out", "run", "--blocks", "3", "--yes", code=3).stderr
        changed = call("run", "--out", "run", "--blocks", "3", "--yes", "--env", "TOKEN", code=3, env={"TOKEN": "x"})
        assert "TOKEN in your environment differs" in changed.stderr
        call("run", "--out", "run", "--blocks", "3", "--yes", env=env)
        gate = {
            "WB_COMMAND": "python3 check.py TOKEN", "WB_IN": "netns", "WB_ENV": "TOKEN", "WB_WITHIN": "1s",
            "WB_BUDGETS": "*.time<=100000%", "WB_EXTEND": "2s", "WB_MARKDOWN": "summary.md", "WB_JUNIT": "gate.xml",
            "WB_BMF": "bmf.json", "WB_ANNOTATIONS": "github", "WEIGHBRIDGE": " ".join(PROGRAM),
        }  # fmt: skip
        (tmp_path / "check.py").write_text(CHECK)
        assert call.program("sh", CI / "gate.sh", env=env | gate, code=None).code in (0, 12)


def test_variables_of_a_study(call: Caller, tmp_path: Path):
    literal, given = canary(), canary()
    study = tmp_path / "study.yaml"
    programs = {"server": SERVER, "client": CLIENT, "check": CHECK}
    written = {role: repr(program.replace("{", "{{").replace("}", "}}")) for role, program in programs.items()}
    study.write_text(STUDY.format(folder=tmp_path, literal=literal, **written))
    with nowhere(call, literal, given):
        call("plan", study)
        call("run", study, "--out", "run", "--yes", "--env", "GIVEN", env={"GIVEN": given})
        reported(call, "run")
        missing = call("run", "--out", "run", "--blocks", "3", "--yes", code=3)
        assert "workloads.shop.API_TOKEN" in missing.stderr and "GIVEN" in missing.stderr
        call("run", study, "--out", "run", "--yes", env={"GIVEN": given})
        study.unlink()  # it has one of them, as its author wanted


COMPOSE = """
services:
  shop:
    image: shop:1
    command: ["serve", "${SHOP_WORD}"]
    env_file: shop.env
    environment:
      COUNTER: redis
      SHOP_PASSWORD: ${SHOP_PASSWORD}
      FROM_SHELL:
    depends_on: [redis]
    ports: ["8080:8129"]
  redis:
    image: redis:7
    environment: {PASSWORD: "${SHOP_PASSWORD}"}
    command: [/usr/bin/redis-server, --save, "", --protected-mode, "no"]
    healthcheck: {test: ["CMD", "/usr/bin/redis-cli", "ping", "${SHOP_WORD}"], interval: 1s}
"""
OWN = """
    for (int n = 0; n < 3; n++) {
        char *value = getenv((char *[]){"SHOP_PASSWORD", "FROM_SHELL", "FROM_FILE"}[n]);
        if (!value || strncmp(value, "canary", 6)) return 10;
    }
    if (count != 3 || strncmp(words[2], "canary", 6)) return 11;
"""


@pytest.mark.skipif(shutil.which("docker-compose") is None, reason="docker-compose is not installed")
def test_a_compose_file(call: Caller, tmp_path: Path, small_userland: Userland, machine: Machine):
    """Words of a command line are the program's own, as the file wants: they are on its command line."""
    program = (
        COMPOSED.replace("8123", "8129")
        .replace("count != 2 ||", "")
        .replace("    char answer", OWN + "    char answer")
    )
    save_image(tmp_path, program, ["/shop"])
    (tmp_path / "redis.tar").write_bytes(saved_redis(small_userland))
    (tmp_path / "compose.yml").write_text(COMPOSE)
    password, word, in_file, in_shell = canary(), canary(), canary(), canary()
    (tmp_path / ".env").write_text(f"SHOP_PASSWORD={password}\nSHOP_WORD={word}\n")
    (tmp_path / "shop.env").write_text(f"FROM_FILE={in_file}\n")
    words = (
        "--compose", "compose.yml", "--service", "shop", "--saved", "shop:1=shop.tar", "--saved", "redis:7=redis.tar",
        "--blocks", "2", "--in", "bridge", "--metric", "n=json:$[0],higher,count",
        "--", "/usr/bin/python3", "-c", CLIENT.replace("recv(1)", "recv(9)"), "{address}", "{port}",
    )  # fmt: skip
    env = {"FROM_SHELL": in_shell}
    with nowhere(call, password, word, in_file, in_shell, own=(b"/shop\0serve", b"/usr/bin/redis-cli\0ping")):
        call("weigh", "--out", "run", *words, env=env)
        reported(call, "run")
        missing = call("run", "--out", "run", "--blocks", "3", "--yes", code=3)
        assert all(name in missing.stderr for name in ("SHOP_PASSWORD", "SHOP_WORD", "shop.FROM_FILE"))
        known = {"SHOP_PASSWORD": password, "SHOP_WORD": word, "FROM_FILE": in_file}
        call("run", "--out", "run", "--blocks", "3", "--yes", env=env | known)
        (tmp_path / ".env").unlink()
        (tmp_path / "shop.env").unlink()
