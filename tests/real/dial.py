"""``dial.py ADDRESS PORT``: joins standard input and output with a TCP connection, as OpenSSH's ProxyCommand."""

import os
import socket
import sys
import threading


def main() -> None:
    try:
        connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=8)
    except OSError as error:
        sys.exit(f"dial: connect to {sys.argv[1]} port {sys.argv[2]}: {error.strerror or error}")
    connection.settimeout(None)
    threading.Thread(target=_send, args=(connection,), daemon=True).start()
    while data := connection.recv(2**16):
        os.write(1, data)


def _send(connection: socket.socket) -> None:
    while data := os.read(0, 2**16):
        connection.sendall(data)
    os._exit(0)


if __name__ == "__main__":
    main()
