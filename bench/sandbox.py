"""How many sendMessage a second one sandbox process takes: python -m bench.sandbox

The load comes from this process; limits and log are on. The limits are evaluated for every call, and wide enough to
refuse none. BENCH_SENDS makes a run smaller.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

import psutil

from telegram_sandbox.process import SandboxProcess

SENDS = int(os.environ.get("BENCH_SENDS", "15000"))
CONNECTIONS = 20
TOKEN = "1000000001:" + "b" * 35
SUBSCRIBERS = range(2001, 2051)
TEXT = "Отчёт за 7 дней готов: <b>1 971</b> доставлено, 12 не доставлено, 1 неизвестно."


async def _connection(port: int, numbers: list[int], waits: list[float]) -> None:
    """What aiogram sends, without aiogram's own cost."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in numbers:
        form = {
            "chat_id": SUBSCRIBERS[number % len(SUBSCRIBERS)],
            "text": f"{number} {TEXT}",
            "parse_mode": "HTML",
            "allow_paid_broadcast": "true",
        }
        body = urlencode(form).encode()
        head = (
            f"POST /bot{TOKEN}/sendMessage HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        began = time.perf_counter()
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        said = json.loads(await reader.readexactly(length))
        waits.append(time.perf_counter() - began)
        if not said["ok"]:
            raise AssertionError(said)
    writer.close()


async def _load(port: int) -> tuple[float, list[float]]:
    waits: list[float] = []
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for first in range(CONNECTIONS):
            group.create_task(_connection(port, list(range(first, SENDS, CONNECTIONS)), waits))
    return time.perf_counter() - began, waits


def main() -> dict[str, object]:
    wide = {"amount": 100_000, "seconds": 1, "burst": 100_000}
    with tempfile.TemporaryDirectory(prefix="sandbox-bench-") as folder, SandboxProcess(Path(folder) / "it") as sandbox:
        sandbox.client.limits(enabled=True, paid=wide, private=wide)
        process = psutil.Process(sandbox.pid)
        before = process.cpu_times()
        seconds, waits = asyncio.run(_load(sandbox.port))
        after = process.cpu_times()
        stored = sandbox.client.log(method="sendMessage", stored=True)
    if {int(entry["text"].split()[0]) for entry in stored} != set(range(SENDS)) or len(stored) != SENDS:
        raise AssertionError(f"the log has {len(stored)} stored messages of {SENDS}")
    cpu = (after.user + after.system) - (before.user + before.system)
    figures = {
        "sends_per_s": round(SENDS / seconds),
        "p50_ms": round(statistics.median(waits) * 1000, 2),
        "p99_ms": round(sorted(waits)[int(len(waits) * 0.99)] * 1000, 2),
        "cores": round(cpu / seconds, 2),
        "sends": SENDS,
    }
    print(json.dumps(figures))
    return figures


if __name__ == "__main__":
    main()
