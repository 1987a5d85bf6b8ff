"""The user's own kubectl: contexts, credential plug-ins and proxies work as they do for them."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.linux import process
from weighbridge.linux.process import Process, SocketStream
from weighbridge.model.command import Command, Completed

ANSWER_S = 20.0
"""How long the API server may take to answer."""
_GRACE_S = 10.0
_LOG = re.compile(r"^[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] ")
"""What kubectl's own log puts before each of its lines (klog)."""
_ERR = re.compile(r'\berr="((?:[^"\\]|\\.)*)"')
_PREFIX = re.compile(
    r"^(?:Error from server(?: \(\w+\))?: |error: |Internal error occurred: |error when creating \"STDIN\": )+"
)
_NO_CREDENTIALS = "Please enter Username"
_NOT_STARTED = "unable to start container process: "
_LONGEST = 600
_ANSWERED_NO = re.compile(r"Error from server \((?:NotFound|Forbidden|Unauthorized)\)|\(Unauthorized\)")


class Refused(Unavailable):
    """The API server has answered, and will answer so again: there is no such object, or no right to it."""


def sentence(stderr: str) -> str:
    """Return what a failed kubectl says, as one sentence without its log; "" where it said nothing."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if any(line.startswith(_NO_CREDENTIALS) for line in lines):
        return "the API server asks for a user and a password: the kubeconfig has no credentials for it"
    said = [line for line in lines if not _LOG.match(line)]
    words = said[-1] if said else _logged(lines[-1]) if lines else ""
    words = _PREFIX.sub("", words)
    if _NOT_STARTED in words:
        words = words.rpartition(_NOT_STARTED)[2].removesuffix(": unknown")
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _logged(line: str) -> str:
    if (error := _ERR.search(line)) is not None:
        return error[1].replace('\\"', '"')
    return _LOG.sub("", line)


class Kubectl:
    """kubectl for one context and namespace; each "" is kubectl's own.

    ``kubeconfig`` is a path, or several as the variable KUBECONFIG has them. ``variables``: what its processes have
    in their environment beside ours. Names are arguments of their own or in JSON, never in YAML or a shell's words.
    """

    def __init__(
        self, context: str = "", namespace: str = "", kubeconfig: str = "", variables: Mapping[str, str] | None = None
    ) -> None:
        several = os.pathsep in kubeconfig  # which only the variable may name
        options = {"--kubeconfig": "" if several else kubeconfig, "--context": context, "--namespace": namespace}
        self._argv = ("kubectl", *(f"{option}={value}" for option, value in options.items() if value))
        self._variables = {**(variables or {}), **({"KUBECONFIG": kubeconfig} if several else {})}

    def run(self, *words: str, stdin: str = "", deadline_s: float = ANSWER_S) -> Completed:
        """Run it to its end. Raises Unavailable where there is no kubectl."""
        waits = f"--request-timeout={deadline_s:g}s"
        command = Command((*self._argv, waits, *words), deadline_s + _GRACE_S, stdin=stdin.encode())
        return process.run(command, env=self._variables)

    def must(self, *words: str, stdin: str = "", deadline_s: float = ANSWER_S) -> str:
        """Return what it prints. Raises Unavailable in its own words, Refused where it would fail again."""
        completed = self.run(*words, stdin=stdin, deadline_s=deadline_s)
        if completed.returncode != 0:
            raise (Refused if refused(completed) else Unavailable)(failure_of(completed))
        return completed.text

    def get(self, *words: str, deadline_s: float = ANSWER_S) -> Any:
        """Return what ``kubectl get`` has of these. Raises Unavailable, Refused."""
        return json.loads(self.must("get", *words, "--output=json", deadline_s=deadline_s))

    def create(self, manifest: Mapping[str, Any]) -> Any:
        """Make one object; return it as it was made. Raises Unavailable."""
        return json.loads(self.must("create", "--filename=-", "--output=json", stdin=json.dumps(manifest)))

    def dry_run(self, manifest: Mapping[str, Any]) -> str:
        """Return why the API server would refuse an object, by its admission rules too; "" where it would not."""
        completed = self.run("create", "--dry-run=server", "--filename=-", stdin=json.dumps(manifest))
        return "" if completed.returncode == 0 else failure_of(completed)

    def delete(self, *words: str) -> None:
        """Delete objects and what they own, without waiting until they have gone. Raises Unavailable."""
        self.must("delete", *words, "--ignore-not-found", "--wait=false", "--cascade=background")

    def can_i(self, verb: str, resource: str) -> bool:
        """Whether the user may do this to a resource (``pods/exec``). Raises Unavailable where nobody answers."""
        kind, _, part = resource.partition("/")
        completed = self.run("auth", "can-i", verb, kind, *((f"--subresource={part}",) if part else ()))
        answer = completed.text.strip().splitlines()[-1:]
        if answer not in (["yes"], ["no"]):
            raise Unavailable(failure_of(completed))
        return answer == ["yes"]

    def current_context(self) -> str:
        """Return the context that is kubectl's own; "" where it has none, as in a pod."""
        completed = self.run("config", "current-context")
        return completed.text.strip() if completed.returncode == 0 else ""

    def current_namespace(self) -> str:
        """Return the namespace that the context names; Kubernetes' own is ``default``."""
        completed = self.run("config", "view", "--minify", "--output=jsonpath={..namespace}")
        return (completed.text.split() or ["default"])[0] if completed.returncode == 0 else "default"

    def talk(self, pod: str, argv: Sequence[str]) -> tuple[Process, SocketStream]:
        """Start a program in a pod that is talked to over its standard input and output. Raises Unavailable."""
        return process.talk(
            Command((*self._argv, "exec", "--stdin", "--quiet", f"pod/{pod}", "--", *argv)), env=self._variables
        )


def refused(completed: Completed) -> bool:
    """Whether the API server has said no to a failed kubectl, and will again."""
    return _ANSWERED_NO.search(completed.stderr.decode(errors="replace")) is not None


def failure_of(completed: Completed) -> str:
    """Return why kubectl failed, as one sentence."""
    late = f"kubectl did not finish within {completed.duration_s:.0f} s"
    said = sentence(completed.stderr.decode(errors="replace"))
    if completed.timed_out:
        return f"{late}: {said}" if said else late
    return said or f"kubectl ended with exit code {completed.returncode} without a word"
