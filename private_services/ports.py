"""Ports of the loopback address, chosen where no outgoing connection of this machine can take them."""

import random
import socket

from private_services.errors import ServiceError

LOOPBACK = "127.0.0.1"

#: Below the range (from 32768 on Linux, 49152 on macOS) from which the kernel gives ports to outgoing
#: connections: a server that is restarted finds its port free again.
CANDIDATES = range(20_000, 32_000)


def free_port() -> int:
    for port in random.sample(CANDIDATES, k=200):
        if is_free(port):
            return port
    raise ServiceError(f"no free port on {LOOPBACK} between {CANDIDATES.start} and {CANDIDATES.stop}")


def is_free(port: int) -> bool:
    with socket.socket() as listener:
        # As servers do: connections of a server that was killed linger, and do not make the port taken.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def accepts(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True
