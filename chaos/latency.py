"""A network between workers and servers: a TCP proxy, a process of its own, delays every byte each way."""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
import subprocess
import sys
import threading
from urllib.parse import urlsplit, urlunsplit

LOOPBACK = "127.0.0.1"


class Network:
    """Addresses of servers as seen through the delay. 0 ms: the addresses themselves, and no process."""

    def __init__(self, milliseconds: float) -> None:
        self.milliseconds = milliseconds
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ports: dict[int, int] = {}

    def through(self, url: str) -> str:
        parts = urlsplit(url)
        if not self.milliseconds or parts.port is None:
            return url
        if parts.port not in self._ports:
            self._ports[parts.port] = self._start(parts.port)
        user = parts.netloc.rpartition("@")[0]
        return urlunsplit(parts._replace(netloc=f"{user}@{LOOPBACK}:{self._ports[parts.port]}"))

    def _start(self, port: int) -> int:
        process = subprocess.Popen(
            [sys.executable, "-m", "chaos.latency", str(port), str(self.milliseconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._processes.append(process)
        assert process.stdout is not None
        return int(process.stdout.readline())

    def close(self) -> None:
        for process in self._processes:
            process.communicate(timeout=10)
        self._processes.clear()
        self._ports.clear()


# ---------------------------------------------------------------------------------- the proxy's own process


class _Proxy:
    def __init__(self, port: int, delay: float) -> None:
        self.port, self.delay = port, delay

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self.port)
        except OSError:
            writer.close()
            return
        for end in (writer, far_writer):
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bytes keep their order; the end of a connection travels as slowly as they do."""
        loop = asyncio.get_running_loop()
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def arrive() -> None:
            try:
                while True:
                    due, data = await on_the_way.get()
                    if (wait := due - loop.time()) > 0:
                        await asyncio.sleep(wait)
                    if not data:
                        return
                    writer.write(data)
                    await writer.drain()
            except OSError:
                return
            finally:
                writer.close()

        arriving = asyncio.ensure_future(arrive())
        data = b"the first"
        while data:
            try:
                data = await reader.read(65536)
            except OSError:
                data = b""
            on_the_way.put_nowait((loop.time() + self.delay, data))
        await arriving


def _end_with_the_run() -> None:
    """Standard input ends when the run closes it, and also when the run is killed."""
    sys.stdin.buffer.read()
    os._exit(0)


async def _main(port: int, delay: float) -> None:
    server = await asyncio.start_server(_Proxy(port, delay).serve, LOOPBACK, 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    await server.serve_forever()


if __name__ == "__main__":
    # epoll counts whole milliseconds, select() does not.
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(_main(int(sys.argv[1]), float(sys.argv[2]) / 1000))
