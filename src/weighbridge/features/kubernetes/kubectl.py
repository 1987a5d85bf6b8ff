"""The user's own kubectl, with the user's contexts, credential plug-ins and proxies."""

import contextlib
import copy
import itertools
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlsplit

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.objects import CONTAINER
from weighbridge.features.kubernetes.remedies import Right, group_of, is_of_cluster, with_remedy
from weighbridge.linux import process
from weighbridge.linux.process import Process, SocketStream
from weighbridge.model.command import Command, Completed

ANSWER_S = 20.0
"""The seconds for an answer of the API server."""
USUAL_NAMESPACE = "default"
FORBIDDEN, NOT_FOUND = "is forbidden: User", "not found"
"""Parts of refusals: a missing right, a missing object."""
_GRACE_S = 10.0
_ALL_S = 120.0
_LOG = re.compile(r"^[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] ")
"""The prefix of the lines of kubectl's own log (klog)."""
_ERR = re.compile(r'\berr="((?:[^"\\]|\\.)*)"')
_PREFIX = re.compile(
    r"^(?:Error from server(?: \(\w+\))?: |error: |Internal error occurred: |error when creating \"STDIN\": )+"
)
_DATE = re.compile(r"\bDate: (\w{3}, [\w :]+ GMT)")
_REFUSALS = ("Error from server", "The ")
_NAMED = re.compile(r'"weighbridge-')
_NO_CREDENTIALS = "Please enter Username"
_NOT_STARTED = "unable to start container process: "
_LONGEST = 600
_FROM_SERVER = "Error from server"
_RIGHT = re.compile(r'cannot \w+ resource "[^"]+"')
_ASKED = re.compile(r'\b(?:Get|Post) \\?"https?://(?P<server>[^"/\\]+)[^"\\]*\\?": (?P<why>[^"\\]+)')
_REFUSED = re.compile(r"The connection to the server (?P<server>\S+) was refused")
_ANSWERED_NO = re.compile(r"Error from server \((?:NotFound|Forbidden|Unauthorized)\)|\(Unauthorized\)")
_DENIED = re.compile(r"forbidden: User|Unauthorized|server doesn't have a resource type")
"""Answers of an API server that has just started, too: it does not know rights and kinds for some seconds."""
_AWAY = re.compile(
    r"Error from server \((?:ServiceUnavailable|Timeout|ServerTimeout|TooManyRequests)\)|failed to download openapi|"
    r"Unable to connect to the server|connection reset by peer|unexpected EOF|client connection lost|GOAWAY"
)
_ALREADY = "Error from server (AlreadyExists)"
_PAUSE_S, _SOON_S = 1.0, 0.2
API_OUTAGE_S = 45.0
"""The seconds for which the API server can be away during a run; below the lease, since its pods must survive."""
DENIED_S = 10.0
"""The seconds for which it can deny existing rights, because it does not know them directly after a start."""
_ANEW_S = 15.0
"""The seconds after which a denial counts as a new one."""
_API_RETRY_S = ANSWER_S + _GRACE_S + _ANEW_S
"""The same for a missing answer, which can need a complete request to notice."""


class RequestRefused(Unavailable):
    """The API server has answered, and would repeat this answer: the object or the right does not exist."""


class Denied(RequestRefused):
    """The user does not have the right; an API server that has just started might know it a few seconds later."""


class Exists(Unavailable):
    """An object of this name exists. ``again`` means that an earlier attempt could have made it."""

    again = False


class Unreached(Unavailable):
    """The API server did not get the request: it does not answer, or no connection is possible."""


class Patience:
    """Decides whether a run repeats requests to a cluster that is away, or that denies existing rights.

    Once it is exhausted, it stays so for the following requests: a run that ends sends many.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        """The clock, in seconds."""
        self._since: dict[str, tuple[float, float]] = {}  # by request: its first and its last failure

    def lasts(self, what: str, within_s: float, anew_s: float = _ANEW_S) -> bool:
        """Return whether to repeat a request after this answer, which is not always the first."""
        now = self.clock()
        first, last = self._since.get(what, (now, now))
        first = now if now - last > anew_s else first
        self._since[what] = first, now
        return now - first < within_s

    def denied(self, why: str) -> bool:
        """Return whether to repeat a request after a denial with these words."""
        right = _RIGHT.search(why)
        return self.lasts(right[0] if right is not None else "all", DENIED_S)

    def away(self) -> bool:
        """Return whether to repeat a request without an answer; it also restarts the time for denials.

        If both alternate, the time for denials only restarts after an `answered` request.
        """
        if "" not in self._since:
            self._since.clear()
        return self.lasts("", API_OUTAGE_S, _API_RETRY_S)

    def answered(self) -> None:
        """Record an answer without a denial."""
        self._since.pop("", None)


def sentence(stderr: str) -> str:
    """Return the message of a failed kubectl as one sentence without its log; "" without a message."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if any(line.startswith(_NO_CREDENTIALS) for line in lines):
        return "the API server asks for a user and a password: the kubeconfig has no credentials for it"
    if words := _unreached(lines):
        return _shortened(words)
    messages = [line for line in lines if not _LOG.match(line)]
    words = messages[-1] if messages else _logged(lines[-1]) if lines else ""
    words = _PREFIX.sub("", words)
    if _NOT_STARTED in words:
        words = words.rpartition(_NOT_STARTED)[2].removesuffix(": unknown")
    return _shortened(words)


def _shortened(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _unreached(lines: Sequence[str]) -> str:
    """Return why the API server got no request, with its name; "" if it did, or if unknown."""
    # the server's messages are about kubelets
    local_lines = [line for line in lines if not line.startswith(_FROM_SERVER)]
    for line in reversed(local_lines):
        if (asked := _ASKED.search(line)) is not None:
            reason = asked["why"].partition("; if you choose to ignore")[0]
            return f"the API server at {asked['server']} cannot be reached: {reason}"
    refused = next((match for line in local_lines if (match := _REFUSED.search(line)) is not None), None)
    return f"the API server at {refused['server']} cannot be reached: connection refused" if refused else ""


def _logged(line: str) -> str:
    if (error := _ERR.search(line)) is not None:
        return error[1].replace('\\"', '"')
    return _LOG.sub("", line)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The content of a kubeconfig about a cluster: ``server`` is the API server's host and port; "" if missing."""

    context: str
    server: str
    user: str
    namespace: str


def _access_review(verb: str, resource: str, namespace: str) -> dict[str, Any]:
    name, group = group_of(resource)
    kind, _, part = name.partition("/")
    where = {} if is_of_cluster(name) else {"namespace": namespace}
    asked = {"verb": verb, "group": group, "resource": kind, "subresource": part, **where}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }


class Kubectl:
    """kubectl for one context and namespace; "" means kubectl's current one.

    ``kubeconfig`` is a path, or several as in the variable KUBECONFIG. ``variables`` are additional variables of its
    processes. Names are separate arguments or in JSON, never in YAML or shell code.
    """

    def __init__(
        self, context: str = "", namespace: str = "", kubeconfig: str = "", variables: Mapping[str, str] | None = None
    ) -> None:
        self.namespace = namespace
        self.patience: Patience | None = None
        """The patience of a run; None means that every request is sent once."""
        several = os.pathsep in kubeconfig  # only the variable can name several
        options = {"--kubeconfig": "" if several else kubeconfig, "--context": context, "--namespace": namespace}
        self._argv = ("kubectl", *(f"{option}={value}" for option, value in options.items() if value))
        self._variables = {**(variables or {}), **({"KUBECONFIG": kubeconfig} if several else {})}

    def run(self, *words: str, stdin: str = "", deadline_s: float = ANSWER_S) -> Completed:
        """Run it to its end. Raises Unavailable without kubectl."""
        waits = f"--request-timeout={deadline_s:g}s"
        command = Command((*self._argv, waits, *words), deadline_s + _GRACE_S, stdin=stdin.encode())
        return process.run(command, env=self._variables)

    def patient(self) -> "Kubectl":
        """Return a kubectl that repeats requests for a while if the API server is away or denies existing rights."""
        its_own = copy.copy(self)
        its_own.patience = Patience()
        return its_own

    def impatient(self) -> "Kubectl":
        """Return a kubectl that sends each request once."""
        its_own = copy.copy(self)
        its_own.patience = None
        return its_own

    def must(self, *words: str, stdin: str = "", deadline_s: float = ANSWER_S, needed: bool = False) -> str:
        """Return its output. Raises Unavailable in its own words, Refused if it would fail again.

        ``needed`` means that every run has the right, so that a denial can come from a starting API server.
        """
        failed_at: float | None = None
        for tries in itertools.count():
            completed = self.run(*words, stdin=stdin, deadline_s=deadline_s)
            if self.patience is not None and not (away(completed) or denied(completed)):
                self.patience.answered()
            if completed.returncode == 0:
                return completed.text
            error = error_of(completed)
            if isinstance(error, Exists):
                error.again = tries > 0
            if self.patience is not None and failed_at is None:
                failed_at = self.patience.clock()
            if not self._asks_again(error, failed_at, needed=needed):
                raise error
            time.sleep(_PAUSE_S)
        raise AssertionError

    def _asks_again(self, error: Unavailable, failed_at: float | None, *, needed: bool) -> bool:
        """Return whether to repeat a request that first failed at this time."""
        if self.patience is None or failed_at is None or self.patience.clock() - failed_at > API_OUTAGE_S + DENIED_S:
            return False
        if isinstance(error, Denied):
            return needed and self.patience.denied(str(error))
        return isinstance(error, Unreached) and self.patience.away()

    def get(self, *words: str, deadline_s: float = ANSWER_S, needed: bool = False) -> Any:
        """Return the output of ``kubectl get``. Raises Unavailable, Refused."""
        return json.loads(self.must("get", *words, "--output=json", deadline_s=deadline_s, needed=needed))

    def raw(self, path: str) -> Any:
        """Return the API server's answer at a path. Raises Unavailable."""
        try:
            return json.loads(self.must("get", f"--raw={path}"))
        except ValueError as error:
            raise Unavailable(f"{path}: the answer is not JSON") from error

    def create(self, manifest: Mapping[str, Any]) -> Any:
        """Make one object; return it as made. Raises Unavailable."""
        try:
            return json.loads(
                self.must("create", "--filename=-", "--output=json", stdin=json.dumps(manifest), needed=True)
            )
        except Exists as error:
            if not error.again:
                raise
            return self.get(f"{manifest['kind'].lower()}/{manifest['metadata']['name']}", needed=True)

    def create_all(self, manifests: Sequence[Mapping[str, Any]], deadline_s: float) -> None:
        """Make many objects of one kind with the same labels by one kubectl. Raises Unavailable.

        After an interruption by the API server, existing ones are not made again.
        """
        words = ("create", "--filename=-", "--output=name", "--validate=false")
        left, again = [*manifests], False
        while left:
            every = {"apiVersion": "v1", "kind": "List", "items": left}
            try:
                self.must(*words, stdin=json.dumps(every), deadline_s=deadline_s, needed=True)
                return
            except Exists as error:
                again = again or error.again
                rest = self._not_there(left) if again else left
                if len(rest) == len(left):
                    raise
                left = rest

    def _not_there(self, manifests: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        kind = manifests[0]["kind"].lower()
        selector = ",".join(f"{key}={value}" for key, value in manifests[0]["metadata"]["labels"].items())
        names = {*self.must("get", kind, f"--selector={selector}", "--output=name", needed=True).split()}
        return [each for each in manifests if f"{kind}/{each['metadata']['name']}" not in names]

    def patch(self, kind: str, name: str, changes: Mapping[str, Any]) -> Any:
        """Change an object (JSON merge patch, RFC 7386); return its new state. Raises Unavailable."""
        words = ("patch", kind, name, "--type=merge", f"--patch={json.dumps(changes)}", "--output=json")
        return json.loads(self.must(*words, needed=True))

    def dry_run(self, manifests: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return for each object why the API server would refuse it, including admission rules; "" if it would not.

        Raises Unavailable if the API server does not answer.
        """
        asked = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        words = ("create", "--dry-run=server", "--filename=-", "--output=name")
        completed = self.run(*words, stdin=json.dumps(asked))
        refusals = refusals_of(completed, manifests)
        if completed.returncode != 0 and not any(refusals):
            raise Unavailable(failure_of(completed))
        return refusals

    def delete(self, *words: str, deadline_s: float = ANSWER_S) -> None:
        """Delete objects and everything that they own, without waiting for the end. Raises Unavailable."""
        how = ("--ignore-not-found", "--wait=false", "--cascade=background")
        self.must("delete", *words, *how, deadline_s=deadline_s, needed=True)

    def delete_all(self, group: str, kind: str, selector: str) -> None:
        """Delete all objects of a kind with these labels by collective requests to the API server.

        ``group`` is the path of its API. Raises Unavailable, Refused.
        """
        namespace = self.namespace or self.current_namespace()
        path = f"{group}/namespaces/{namespace}/{kind}?labelSelector={quote(selector)}"
        deadline = time.monotonic() + _ALL_S
        while True:
            try:
                if not (items := json.loads(self.must("delete", f"--raw={path}", deadline_s=_ALL_S)).get("items")):
                    return
                if time.monotonic() > deadline:  # a finalizer does not work
                    raise Unavailable(f"{len(items)} {kind} still exist {_ALL_S:.0f} s after they were deleted")
                time.sleep(_SOON_S)
            except RequestRefused:
                raise
            except Unavailable:  # an API server ends every request after a minute
                if time.monotonic() > deadline:
                    raise

    def count(self, path: str) -> int:
        """Return the number of objects at a path of the API server, without reading them. Raises Unavailable."""
        first = self.raw(f"{path}?limit=1")
        return len(first.get("items") or ()) + int((first.get("metadata") or {}).get("remainingItemCount") or 0)

    def lacking(self, rights: Sequence[Right]) -> list[Right]:
        """Return the rights that the user does not have. Raises Unavailable if the API server does not answer."""
        namespace = self.namespace or self.current_namespace()
        asked = {"apiVersion": "v1", "kind": "List", "items": [_access_review(*each, namespace) for each in rights]}
        text, allowed = self.must("create", "--filename=-", "--output=json", stdin=json.dumps(asked)).strip(), []
        decoder = json.JSONDecoder()
        try:
            while text:  # several documents
                answer, end = decoder.raw_decode(text)
                allowed.append(bool(answer["status"]["allowed"]))
                text = text[end:].lstrip()
            return [each for each, is_allowed in zip(rights, allowed, strict=True) if not is_allowed]
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable("the API server does not report what this user is allowed to do") from error

    def clock(self) -> datetime:
        """Return the time of the API server's clock, or of this machine's if that is unknown."""
        date = _DATE.search(self.run("get", "--raw=/version", "-v=8").stderr.decode(errors="replace"))
        with contextlib.suppress(ValueError):
            return parsedate_to_datetime(date[1]) if date else datetime.now(UTC)
        return datetime.now(UTC)

    def current_context(self) -> str:
        """Return kubectl's current context; "" if it has none, as in a pod."""
        completed = self.run("config", "current-context")
        return completed.text.strip() if completed.returncode == 0 else ""

    def current_namespace(self) -> str:
        """Return the namespace of the context; the default of Kubernetes is ``default``."""
        completed = self.run("config", "view", "--minify", "--output=jsonpath={..namespace}")
        return (completed.text.split() or [USUAL_NAMESPACE])[0] if completed.returncode == 0 else USUAL_NAMESPACE

    def configuration(self) -> Configuration:
        """Return the content of the kubeconfig, without contacting a cluster or starting a credential plug-in."""
        completed = self.run("config", "view", "--minify", "--output=json")
        with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError):
            view = json.loads(completed.stdout)
            context, cluster = view["contexts"][0], view["clusters"][0]["cluster"]
            settings = context.get("context") or {}
            return Configuration(
                str(context["name"]),
                urlsplit(str(cluster.get("server", ""))).netloc.rpartition("@")[2],
                str(settings.get("user", "")),
                self.namespace or str(settings.get("namespace") or USUAL_NAMESPACE),
            )
        return Configuration("", "", "", self.namespace or USUAL_NAMESPACE)

    def entry(self, pod: str) -> tuple[str, ...]:
        """Return the words that start a program in a pod, before the words of the program."""
        kubeconfig = self._variables.get("KUBECONFIG")
        setting = ("env", f"KUBECONFIG={kubeconfig}") if kubeconfig else ()
        return (*setting, *self._argv, "exec", "--quiet", f"pod/{pod}", f"--container={CONTAINER}", "--")

    def talk(self, pod: str, argv: Sequence[str]) -> tuple[Process, SocketStream]:
        """Start an interactive program in a pod, with a stream to its input and output. Raises Unavailable."""
        into = ("exec", "--stdin", "--quiet", f"pod/{pod}", f"--container={CONTAINER}")
        return process.talk(Command((*self._argv, *into, "--", *argv)), env=self._variables)


def refusals_of(completed: Completed, manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return for each object of one command why kubectl did not make it; "" if it did.

    Some refusals name their object, some only its kind (a missing right), some neither (a webhook's).
    """
    messages = [line for line in completed.stderr.decode(errors="replace").splitlines() if line.startswith(_REFUSALS)]
    made_names = {name.rpartition("/")[2] for name in completed.text.split()}
    refusals = []
    for manifest in manifests:
        name, kind = str(manifest["metadata"]["name"]), str(manifest["kind"]).lower()
        of_kinds = [line for line in messages if FORBIDDEN in line]
        rest = [line for line in messages if not _NAMED.search(line) and line not in of_kinds]
        fitting = (
            [line for line in messages if f'"{name}"' in line] or [line for line in of_kinds if kind in line] or rest
        )
        refusals.append("" if name in made_names or not fitting else sentence(fitting[0]).replace(f' "{name}"', ""))
    return refusals


def refused(completed: Completed) -> bool:
    """Return whether the API server refused a failed kubectl's request permanently."""
    return _ANSWERED_NO.search(completed.stderr.decode(errors="replace")) is not None


def denied(completed: Completed) -> bool:
    """Return whether a failed kubectl's request was denied for a missing right."""
    return _DENIED.search(completed.stderr.decode(errors="replace")) is not None


def away(completed: Completed) -> bool:
    """Return whether a failed kubectl got no answer from the API server."""
    words = completed.stderr.decode(errors="replace")
    return bool(_unreached(words.splitlines())) or _AWAY.search(words) is not None


def error_of(completed: Completed) -> Unavailable:
    """Return why kubectl failed, with a remedy."""
    words = completed.stderr.decode(errors="replace")
    kind: type[Unavailable] = Unavailable
    if denied(completed):
        kind = Denied
    elif refused(completed):
        kind = RequestRefused
    elif _ALREADY in words:
        kind = Exists
    elif away(completed):
        kind = Unreached
    return kind(with_remedy(failure_of(completed)))


def failure_of(completed: Completed) -> str:
    """Return why kubectl failed, as one sentence."""
    late = f"kubectl did not finish within {completed.duration_s:.0f} s"
    message = sentence(completed.stderr.decode(errors="replace"))
    if completed.timed_out:
        return f"{late}: {message}" if message else late
    return message or f"kubectl ended with exit code {completed.returncode} and printed nothing"
