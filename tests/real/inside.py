"""What is tried inside of a site, of whichever environment."""

from typing import Any

from weighbridge.model.command import Command, Completed


def sh(site: Any, script: str, deadline_s: float = 30) -> Completed:
    """Run a script of the shell in the site, and return what it ended with."""
    done: Completed = site.run(Command(("sh", "-c", script), deadline_s))
    return done


def must_kill_what_takes_too_much(site: Any) -> None:
    """Take 400 MiB, more than the site's limit of memory: the program is killed and counted, and the site stays."""
    before = site.meters()["oom_kills"]
    done = site.run(Command(("perl", "-e", '$x = "a" x (400 * 2**20); print "survived\n"'), 30))
    assert done.returncode != 0 and b"survived" not in done.stdout and not done.timed_out
    assert site.meters()["oom_kills"] > before
    assert sh(site, "echo up").stdout == b"up\n"


def must_make_no_progress_while_frozen(site: Any) -> None:
    """Freeze a busy program: it uses no CPU time until it is thawed."""
    running = site.start(Command(("sh", "-c", "while :; do :; done")))
    try:
        assert not running.wait(0.2)
        site.freeze()
        before = site.meters()["cpu_s"]
        assert not running.wait(0.3) and site.meters()["cpu_s"] == before
        site.thaw()
        assert not running.wait(0.2) and site.meters()["cpu_s"] > before
    finally:
        running.stop()
