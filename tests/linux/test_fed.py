"""What is sent to a program piece by piece: all of it, never in one piece, and no more once it has ended."""

from collections.abc import Iterator

from weighbridge.linux.process import fed
from weighbridge.model.command import Completed

MIB = 2**20


class Program:
    """A program that reads ``most`` bytes and ends."""

    pid = 1

    def __init__(self, most: int) -> None:
        self.pieces: list[bytes] = []
        self.most = most
        self.input_ended = False

    def send(self, data: bytes) -> None:
        if sum(map(len, self.pieces)) + len(data) > self.most:
            raise BrokenPipeError
        self.pieces.append(data)

    def end_input(self) -> None:
        self.input_ended = True

    def output_so_far(self, start: int = 0) -> bytes:
        return b""

    def poll(self) -> int:
        return 0

    def wait(self, timeout_s: float) -> bool:
        return True

    def stop(self, *, timed_out: bool = False) -> Completed:
        return Completed(("import",), 0, b"", b"", 0.1, timed_out)


def pieces(made: list[int]) -> Iterator[bytes]:
    for number in range(5):
        made.append(number)
        yield bytes([number]) * (MIB // 2)
        yield bytes([number]) * MIB


def test_all_pieces_arrive_and_none_is_large():
    program, made = Program(100 * MIB), list[int]()
    completed = fed(program, pieces(made), 1.0)
    assert b"".join(program.pieces) == b"".join(pieces([])) and program.input_ended
    assert max(map(len, program.pieces)) <= 2 * MIB and not completed.timed_out


def test_nothing_more_is_made_for_a_program_that_has_ended():
    program, made = Program(2 * MIB), list[int]()
    assert not fed(program, pieces(made), 1.0).timed_out
    assert len(made) < 5 and not program.input_ended
