"""python -m telegram_sandbox: run the sandbox in the foreground until Ctrl-C. Exit code 2: it could not start."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from telegram_sandbox.errors import SandboxError

DEFAULT_PORT = 8081
#: Called with the port when connections are accepted.
Ready = Callable[[int], None]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="telegram_sandbox", description="A Telegram Bot API server on this machine.")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0: any free one")
    parser.add_argument("--host", default="127.0.0.1", help="the loopback, unless you know who else can reach it")
    parser.add_argument("--folder", type=Path, default=Path("telegram-sandbox"), help="where everything is kept")
    parser.add_argument(
        "--latency", type=float, default=0.0, metavar="SECONDS", help="every answer takes at least this"
    )
    parser.add_argument("--no-limits", action="store_true", help="no rates, no 429 but ordered ones")
    wish = parser.parse_args(arguments)
    try:
        return run(wish.folder.absolute(), wish.host, wish.port, wish.latency, not wish.no_limits)
    except SandboxError as error:
        sys.stderr.write(f"telegram_sandbox: {error}\n")
        return 2


def run(
    folder: Path, host: str, port: int, latency: float = 0.0, limits: bool = True, ready: Ready | None = None
) -> int:
    import asyncio

    from telegram_sandbox.server import Server

    server = Server(folder, host, port)
    server.control.latency({"seconds": latency})
    server.control.limits({"enabled": limits})
    asyncio.run(server.serve(ready or (lambda port: _say(host, port, folder))))
    return 0


def _say(host: str, port: int, folder: Path) -> None:
    sys.stdout.write(
        f"Telegram sandbox   http://{host}:{port}/   chat in the browser\n"
        f"for a bot          the API server http://{host}:{port} and any token, such as 1000000001:{'A' * 35}\n"
        f"data and log       {folder}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
