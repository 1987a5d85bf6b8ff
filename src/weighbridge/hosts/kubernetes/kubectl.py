"""The user's own kubectl: contexts, credential plug-ins and proxies work as they do for them."""

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
from weighbridge.hosts.kubernetes.objects import CONTAINER
from weighbridge.hosts.kubernetes.remedies import Right, group_of, is_of_cluster, with_remedy
from weighbridge.linux import process
from weighbridge.linux.process import Process, SocketStream
from weighbridge.model.command import Command, Completed

ANSWER_S = 20.0
"""How long the API server may take to answer."""
USUAL_NAMESPACE = "default"
FORBIDDEN, NOT_FOUND = "is forbidden: User", "not found"
"""In a refusal: what the user may not do; what there is not."""
_GRACE_S = 10.0
_ALL_S = 120.0
_LOG = re.compile(r"^[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] ")
"""What kubectl's own log puts before each of its lines (klog)."""
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
"""As an API server says it that has just started, too: it knows neither rights nor kinds for some seconds."""
_AWAY = re.compile(
    r"Error from server \((?:ServiceUnavailable|Timeout|ServerTimeout|TooManyRequests)\)|failed to download openapi|"
    r"Unable to connect to the server|connection reset by peer|unexpected EOF|client connection lost|GOAWAY"
)
_ALREADY = "Error from server (AlreadyExists)"
_PAUSE_S, _SOON_S = 1.0, 0.2
AWAY_S = 45.0
"""For so long the API server may be away during a run: less than the lease, as its pods must still be there."""
DENIED_S = 10.0
"""And for so long it may deny what a run was allowed: after a start it does not know yet who may do what."""
_ANEW_S = 15.0
"""A denial that comes so long after the last one has another reason."""
_AWAY_ANEW_S = ANSWER_S + _GRACE_S + _ANEW_S
"""That nobody answers may take a whole request to be known."""


class Refused(Unavailable):
    """The API server has answered, and will answer so again: there is no such object, or no right to it."""


class Denied(Refused):
    """The user has no right to it; an API server that has just started may know that a few seconds later."""


class Exists(Unavailable):
    """There is an object of this name. ``again``: perhaps of an earlier try, whose answer was lost."""

    again = False


class Unreached(Unavailable):
    """The API server was not asked: nobody answers there, or no connection to it can be made."""


class Patience:
    """Tells a run whether to go on asking a cluster that is away, or that denies what it allowed before.

    Once it is over, what follows has none: a run that ends asks for many things.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        """The seconds by which it goes."""
        self._since: dict[str, tuple[float, float]] = {}  # by what is asked again: the first time, and the last

    def lasts(self, what: str, within_s: float, anew_s: float = _ANEW_S) -> bool:
        """Whether to ask again, where this came as an answer, possibly not for the first time."""
        now = self.clock()
        first, last = self._since.get(what, (now, now))
        first = now if now - last > anew_s else first
        self._since[what] = first, now
        return now - first < within_s

    def denied(self, why: str) -> bool:
        """Whether to ask again where a right is denied in these words."""
        right = _RIGHT.search(why)
        return self.lasts(right[0] if right is not None else "all", DENIED_S)

    def away(self) -> bool:
        """Whether to ask again where nobody has answered; what is denied after that may be denied for a while.

        Not for a while each time where both alternate: this begins anew only once something was `answered`.
        """
        if "" not in self._since:
            self._since.clear()
        return self.lasts("", AWAY_S, _AWAY_ANEW_S)

    def answered(self) -> None:
        """Somebody has answered, and denied nothing."""
        self._since.pop("", None)


def sentence(stderr: str) -> str:
    """Return what a failed kubectl says, as one sentence without its log; "" where it said nothing."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if any(line.startswith(_NO_CREDENTIALS) for line in lines):
        return "the API server asks for a user and a password: the kubeconfig has no credentials for it"
    if words := _unreached(lines):
        return _shortened(words)
    said = [line for line in lines if not _LOG.match(line)]
    words = said[-1] if said else _logged(lines[-1]) if lines else ""
    words = _PREFIX.sub("", words)
    if _NOT_STARTED in words:
        words = words.rpartition(_NOT_STARTED)[2].removesuffix(": unknown")
    return _shortened(words)


def _shortened(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _unreached(lines: Sequence[str]) -> str:
    """Why the API server could not be asked, with its name; "" where it was, or where that is not told."""
    own = [line for line in lines if not line.startswith(_FROM_SERVER)]  # what it tells is of kubelets
    for line in reversed(own):
        if (asked := _ASKED.search(line)) is not None:
            why = asked["why"].partition("; if you choose to ignore")[0]
            return f"the API server at {asked['server']} cannot be reached: {why}"
    refused = next((found for line in own if (found := _REFUSED.search(line)) is not None), None)
    return f"the API server at {refused['server']} cannot be reached: connection refused" if refused else ""


def _logged(line: str) -> str:
    if (error := _ERR.search(line)) is not None:
        return error[1].replace('\\"', '"')
    return _LOG.sub("", line)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a kubeconfig says of a cluster: ``server`` is the API server's host and port. "": it does not say."""

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
    """kubectl for one context and namespace; each "" is kubectl's own.

    ``kubeconfig`` is a path, or several as the variable KUBECONFIG has them. ``variables``: what its processes have
    in their environment beside ours. Names are arguments of their own or in JSON, never in YAML or a shell's words.
    """

    def __init__(
        self, context: str = "", namespace: str = "", kubeconfig: str = "", variables: Mapping[str, str] | None = None
    ) -> None:
        self.namespace = namespace
        self.patience: Patience | None = None
        """That of a run, for a while; None: an API server that does not answer at once does not answer."""
        several = os.pathsep in kubeconfig  # which only the variable may name
        options = {"--kubeconfig": "" if several else kubeconfig, "--context": context, "--namespace": namespace}
        self._argv = ("kubectl", *(f"{option}={value}" for option, value in options.items() if value))
        self._variables = {**(variables or {}), **({"KUBECONFIG": kubeconfig} if several else {})}

    def run(self, *words: str, stdin: str = "", deadline_s: float = ANSWER_S) -> Completed:
        """Run it to its end. Raises Unavailable where there is no kubectl."""
        waits = f"--request-timeout={deadline_s:g}s"
        command = Command((*self._argv, waits, *words), deadline_s + _GRACE_S, stdin=stdin.encode())
        return process.run(command, env=self._variables)

    def patient(self) -> "Kubectl":
        """Return one that asks again for a while: where the API server is away, or denies what every run needs."""
        its_own = copy.copy(self)
        its_own.patience = Patience()
        return its_own

    def impatient(self) -> "Kubectl":
        """Return one that asks once."""
        its_own = copy.copy(self)
        its_own.patience = None
        return its_own

    def must(self, *words: str, stdin: str = "", deadline_s: float = ANSWER_S, needed: bool = False) -> str:
        """Return what it prints. Raises Unavailable in its own words, Refused where it would fail again.

        ``needed``: every run has the right to it, so that a denial may be that of an API server which starts.
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
        """Whether to ask again what failed for the first time at this time."""
        if self.patience is None or failed_at is None or self.patience.clock() - failed_at > AWAY_S + DENIED_S:
            return False
        if isinstance(error, Denied):
            return needed and self.patience.denied(str(error))
        return isinstance(error, Unreached) and self.patience.away()

    def get(self, *words: str, deadline_s: float = ANSWER_S, needed: bool = False) -> Any:
        """Return what ``kubectl get`` has of these. Raises Unavailable, Refused."""
        return json.loads(self.must("get", *words, "--output=json", deadline_s=deadline_s, needed=needed))

    def raw(self, path: str) -> Any:
        """Return what the API server answers at a path. Raises Unavailable."""
        try:
            return json.loads(self.must("get", f"--raw={path}"))
        except ValueError as error:
            raise Unavailable(f"{path}: the answer is not JSON") from error

    def create(self, manifest: Mapping[str, Any]) -> Any:
        """Make one object; return it as it was made. Raises Unavailable."""
        try:
            return json.loads(
                self.must("create", "--filename=-", "--output=json", stdin=json.dumps(manifest), needed=True)
            )
        except Exists as error:
            if not error.again:
                raise
            return self.get(f"{manifest['kind'].lower()}/{manifest['metadata']['name']}", needed=True)

    def create_all(self, manifests: Sequence[Mapping[str, Any]], deadline_s: float) -> None:
        """Make many objects of one kind and the same labels by one kubectl. Raises Unavailable.

        Where the API server went away meanwhile, those that it has made are not made again.
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
        """Return those that there is no object of."""
        kind = manifests[0]["kind"].lower()
        selector = ",".join(f"{key}={value}" for key, value in manifests[0]["metadata"]["labels"].items())
        names = {*self.must("get", kind, f"--selector={selector}", "--output=name", needed=True).split()}
        return [each for each in manifests if f"{kind}/{each['metadata']['name']}" not in names]

    def patch(self, kind: str, name: str, changes: Mapping[str, Any]) -> Any:
        """Change an object (JSON merge patch, RFC 7386); return it as it is then. Raises Unavailable."""
        words = ("patch", kind, name, "--type=merge", f"--patch={json.dumps(changes)}", "--output=json")
        return json.loads(self.must(*words, needed=True))

    def dry_run(self, manifests: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return for each object why the API server would refuse it, by its admission rules too; "": it would not.

        Raises Unavailable where nobody answers.
        """
        asked = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        words = ("create", "--dry-run=server", "--filename=-", "--output=name")
        completed = self.run(*words, stdin=json.dumps(asked))
        refusals = refusals_of(completed, manifests)
        if completed.returncode != 0 and not any(refusals):
            raise Unavailable(failure_of(completed))
        return refusals

    def delete(self, *words: str, deadline_s: float = ANSWER_S) -> None:
        """Delete objects and what they own, without waiting until they have gone. Raises Unavailable."""
        how = ("--ignore-not-found", "--wait=false", "--cascade=background")
        self.must("delete", *words, *how, deadline_s=deadline_s, needed=True)

    def delete_all(self, group: str, kind: str, selector: str) -> None:
        """Delete all objects of a kind with these labels by requests to the API server for all of them at once.

        ``group``: the path of its API. Raises Unavailable, Refused.
        """
        namespace = self.namespace or self.current_namespace()
        path = f"{group}/namespaces/{namespace}/{kind}?labelSelector={quote(selector)}"
        deadline = time.monotonic() + _ALL_S
        while True:
            try:
                if not (items := json.loads(self.must("delete", f"--raw={path}", deadline_s=_ALL_S)).get("items")):
                    return
                if time.monotonic() > deadline:  # something that finalizes them does not
                    raise Unavailable(f"{len(items)} {kind} still exist {_ALL_S:.0f} s after they were deleted")
                time.sleep(_SOON_S)
            except Refused:
                raise
            except Unavailable:  # an API server ends a request after a minute, however far it has come
                if time.monotonic() > deadline:
                    raise

    def count(self, path: str) -> int:
        """Return how many objects there are at a path of the API server, without reading them. Raises Unavailable."""
        first = self.raw(f"{path}?limit=1")
        return len(first.get("items") or ()) + int((first.get("metadata") or {}).get("remainingItemCount") or 0)

    def lacking(self, rights: Sequence[Right]) -> list[Right]:
        """Return those of these rights that the user has not. Raises Unavailable where nobody answers."""
        namespace = self.namespace or self.current_namespace()
        asked = {"apiVersion": "v1", "kind": "List", "items": [_access_review(*each, namespace) for each in rights]}
        text, allowed = self.must("create", "--filename=-", "--output=json", stdin=json.dumps(asked)).strip(), []
        decoder = json.JSONDecoder()
        try:
            while text:  # one document after the other
                answer, end = decoder.raw_decode(text)
                allowed.append(bool(answer["status"]["allowed"]))
                text = text[end:].lstrip()
            return [each for each, may in zip(rights, allowed, strict=True) if not may]
        except (ValueError, KeyError, TypeError) as error:
            raise Unavailable("the API server does not report what this user is allowed to do") from error

    def clock(self) -> datetime:
        """Return the time by the API server's clock; by this machine's where it does not tell."""
        told = _DATE.search(self.run("get", "--raw=/version", "-v=8").stderr.decode(errors="replace"))
        with contextlib.suppress(ValueError):
            return parsedate_to_datetime(told[1]) if told else datetime.now(UTC)
        return datetime.now(UTC)

    def current_context(self) -> str:
        """Return the context that is kubectl's own; "" where it has none, as in a pod."""
        completed = self.run("config", "current-context")
        return completed.text.strip() if completed.returncode == 0 else ""

    def current_namespace(self) -> str:
        """Return the namespace that the context names; Kubernetes' own is ``default``."""
        completed = self.run("config", "view", "--minify", "--output=jsonpath={..namespace}")
        return (completed.text.split() or [USUAL_NAMESPACE])[0] if completed.returncode == 0 else USUAL_NAMESPACE

    def configuration(self) -> Configuration:
        """Return what the kubeconfig says, without reaching a cluster or starting a credential plug-in."""
        completed = self.run("config", "view", "--minify", "--output=json")
        with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError):
            view = json.loads(completed.stdout)
            context, cluster = view["contexts"][0], view["clusters"][0]["cluster"]
            about = context.get("context") or {}
            return Configuration(
                str(context["name"]),
                urlsplit(str(cluster.get("server", ""))).netloc.rpartition("@")[2],
                str(about.get("user", "")),
                self.namespace or str(about.get("namespace") or USUAL_NAMESPACE),
            )
        return Configuration("", "", "", self.namespace or USUAL_NAMESPACE)

    def talk(self, pod: str, argv: Sequence[str]) -> tuple[Process, SocketStream]:
        """Start a program in a pod that is talked to over its standard input and output. Raises Unavailable."""
        into = ("exec", "--stdin", "--quiet", f"pod/{pod}", f"--container={CONTAINER}")
        return process.talk(Command((*self._argv, *into, "--", *argv)), env=self._variables)


def refusals_of(completed: Completed, manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return for each object why kubectl did not make it, of one that was told to make them all; "": it did.

    Some refusals name their object, some only its kind (a right that is lacking), some neither (a webhook's).
    """
    said = [line for line in completed.stderr.decode(errors="replace").splitlines() if line.startswith(_REFUSALS)]
    made = {name.rpartition("/")[2] for name in completed.text.split()}
    refusals = []
    for manifest in manifests:
        name, kind = str(manifest["metadata"]["name"]), str(manifest["kind"]).lower()
        of_kinds = [line for line in said if FORBIDDEN in line]
        rest = [line for line in said if not _NAMED.search(line) and line not in of_kinds]
        fitting = (
            [line for line in said if f'"{name}"' in line] or [line for line in of_kinds if kind in line] or rest
        )
        refusals.append("" if name in made or not fitting else sentence(fitting[0]).replace(f' "{name}"', ""))
    return refusals


def refused(completed: Completed) -> bool:
    """Whether the API server has said no to a failed kubectl, and will again."""
    return _ANSWERED_NO.search(completed.stderr.decode(errors="replace")) is not None


def denied(completed: Completed) -> bool:
    """Whether a failed kubectl had no right to what it was to do, by the API server's answer."""
    return _DENIED.search(completed.stderr.decode(errors="replace")) is not None


def away(completed: Completed) -> bool:
    """Whether a failed kubectl had no answer of the API server."""
    words = completed.stderr.decode(errors="replace")
    return bool(_unreached(words.splitlines())) or _AWAY.search(words) is not None


def error_of(completed: Completed) -> Unavailable:
    """Return why kubectl failed, with what would help."""
    words = completed.stderr.decode(errors="replace")
    kind: type[Unavailable] = Unavailable
    if denied(completed):
        kind = Denied
    elif refused(completed):
        kind = Refused
    elif _ALREADY in words:
        kind = Exists
    elif away(completed):
        kind = Unreached
    return kind(with_remedy(failure_of(completed)))


def failure_of(completed: Completed) -> str:
    """Return why kubectl failed, as one sentence."""
    late = f"kubectl did not finish within {completed.duration_s:.0f} s"
    said = sentence(completed.stderr.decode(errors="replace"))
    if completed.timed_out:
        return f"{late}: {said}" if said else late
    return said or f"kubectl ended with exit code {completed.returncode} and printed nothing"
