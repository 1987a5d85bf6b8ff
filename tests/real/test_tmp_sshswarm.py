import signal, time
import pytest
from .far import far_hosts
from .test_ssh import *
from .test_ssh import far, reached, write, going, trials, swarm_of
def log(f, name):
    for comm in (f.host.folder/"proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip()=="dockerd":
                t=(comm.parent/"fd/2").open("rb").read().decode()
                print(name, f.host.name, "LOG\n", "\n".join(l[:400] for l in t.splitlines() if "kernel parameter" not in l)); return
        except OSError as e: print(e)
def test_zz(far, tmp_path):
    run = tmp_path / "run"
    study = write(tmp_path, far, "overlay", blocks=4)
    with going("run", study, "--out", run, "--yes", files=tmp_path) as going_on:
        going_on.await_that(lambda: len(trials(run)) >= 2)
        going_on.end(signal.SIGKILL)
    time.sleep(6)
    log(far[0], "after kill")
    for f in far:
        print("=====init", f.host.name, f.inside("sh","-c",f"docker network ls; docker swarm init --advertise-addr {f.host.address}; sleep 4; docker network ls; docker network inspect ingress; ip -br addr"))
    log(far[0], "after init")
    for f in far: f.inside("docker","swarm","leave","--force")
