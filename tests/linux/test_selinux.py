"""What a container with its host's files needs where SELinux is enforced. Not tried on a machine that enforces it."""

from collections.abc import Callable

import pytest

from weighbridge.linux import selinux


def reading(content: bytes | None) -> Callable[[str], bytes]:
    def read(path: str) -> bytes:
        assert path == "/sys/fs/selinux/enforce"
        if content is None:
            raise FileNotFoundError(path)
        return content

    return read


@pytest.mark.parametrize(
    ("content", "state"), [(b"1", "enforcing"), (b"1\n", "enforcing"), (b"0", "permissive"), (None, ""), (b"", "")]
)
def test_the_kernel_tells_whether_it_is_enforced(content: bytes | None, state: str):
    assert selinux.state(reading(content)) == state


@pytest.mark.parametrize(
    ("content", "files_of_host", "options"),
    [(b"1", True, ["label=disable"]), (b"1", False, []), (b"0", True, []), (None, True, [])],
)
def test_only_a_container_with_files_of_its_host_goes_without_labels(
    content: bytes | None, files_of_host: bool, options: list[str]
):
    assert selinux.security_options(reading(content), files_of_host=files_of_host) == options


def test_a_reader_is_told_that_a_container_is_confined_less():
    assert "label=disable" in selinux.facts(["seccomp=unconfined", "label=disable"])["SELinux"]
    assert selinux.facts(["seccomp=unconfined"]) == selinux.facts([]) == {}
