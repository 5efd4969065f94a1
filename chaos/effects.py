"""The judge: a small HTTP server, a process of its own, that logs every effect at the moment it is made.

An effect counts from the moment that its request has been read, whether or not the caller lives to see the answer.
The answer is held back for as long as the effect is said to take; how many are held at once is counted.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Effect:
    """One effect as the server saw it; times are of time.monotonic(), which all processes of a host share."""

    key: str
    worker: int  #: process id of the caller
    began: float
    ended: float
    in_flight: int  #: effects being made at that moment, this one included


class EffectServer:
    """Starts the server's process; it ends with this object, and also when this process is killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chaos.effects"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self.url = f"http://{LOOPBACK}:{int(self._process.stdout.readline())}"

    def log(self) -> list[Effect]:
        with urllib.request.urlopen(f"{self.url}/log", timeout=30) as answer:  # noqa: S310
            return [Effect(*entry) for entry in json.load(answer)]

    def close(self) -> None:
        self._process.communicate(timeout=10)


def times_made(log: list[Effect]) -> Counter[str]:
    return Counter(effect.key for effect in log)


def most_at_once(log: list[Effect]) -> int:
    return max((effect.in_flight for effect in log), default=0)


def most_in_a_second(moments: list[float]) -> int:
    """The most moments in any window of one second that includes its beginning and not its end."""
    ordered = sorted(moments)
    most = first = 0
    for index, moment in enumerate(ordered):
        while moment - ordered[first] >= 1.0:
            first += 1
        most = max(most, index - first + 1)
    return most


# --------------------------------------------------------------------------------- the server's own process


class _Server:
    def __init__(self) -> None:
        self._effects: list[list[str | int | float]] = []
        self._in_flight = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                target = urlsplit(head.split(b" ", 2)[1].decode())
                if head.startswith(b"POST"):
                    options = parse_qs(target.query)
                    await self._make(target.path[1:], int(options["worker"][0]), float(options["seconds"][0]))
                    body = b"{}"
                else:
                    body = json.dumps(self._effects).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass  # the caller has ended
        finally:
            writer.close()

    async def _make(self, key: str, worker: int, seconds: float) -> None:
        self._in_flight += 1
        now = time.monotonic()
        entry: list[str | int | float] = [key, worker, now, now + seconds, self._in_flight]
        self._effects.append(entry)
        await asyncio.sleep(seconds)
        self._in_flight -= 1
        entry[3] = time.monotonic()


def _end_with_the_run() -> None:
    """Standard input ends when the run closes it, and also when the run is killed."""
    sys.stdin.buffer.read()
    os._exit(0)


async def _main() -> None:
    server = await asyncio.start_server(_Server().serve, LOOPBACK, 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
