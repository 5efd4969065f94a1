"""A person waits for the bot's answer for less than half a second: /status at 10 commands/s from 50 people, p95 of the
time from the command to its answer, 80 ms of it the sandbox's own; also while reports are being made.

The times are those of the sandbox's log, from `say` to the end of the sendMessage that answers it.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import defaultdict

from chaos.checks.chat import BOT, TOKEN, Bot, welcome
from chaos.harness import Chaos
from chaos.verdicts import Verdict
from chronos.models.new_task import NewTask
from telegram_sandbox.process import SandboxProcess
from telegram_sandbox.seed import FIRST_SUBSCRIBER, SUBSCRIBERS

#: Milliseconds.
MOST_P95 = 500.0
#: Commands per second; seconds of each part; seconds until the last answer.
RATE, PART, LAST = 10.0, 20.0, 15.0
REPORTS = 10


def run(chaos: Chaos, people: int = SUBSCRIBERS, part: float = PART) -> Verdict:
    verdict = Verdict("replies")
    with SandboxProcess(chaos.folder / "sandbox-of-replies", latency=0.08) as sandbox:
        environment = {"CHRONOS_BOT_TOKEN": TOKEN, "CHRONOS_TELEGRAM_URL": sandbox.url}
        client = sandbox.client
        with chaos.stage(verdict, threads=4, environment=environment) as stage:
            ids = range(FIRST_SUBSCRIBER, FIRST_SUBSCRIBER + people)
            welcome(stage, ids)
            # Something to tell for everybody.
            stage.runtime.submit(*(NewTask("post", "ping", {}, user_id=id_, chat=id_, bot_id=BOT) for id_ in ids))
            bot = Bot(stage)
            try:
                bot.start()
                stage.start(1)
                bot.wait_until_it_polls()
                for name in ("alone", "with reports"):
                    if name != "alone":
                        stage.runtime.submit(
                            *(NewTask("report", "report", {"parts": ["chart", "pdf"]}) for _ in range(REPORTS))
                        )
                    began, said = time.time(), int(RATE * part)
                    for number in range(said):
                        time.sleep(max(0.0, began + number / RATE - time.time()))
                        client.post("say", **{"as": ids[number % people]}, text="/status", bot=BOT)
                    time.sleep(LAST)
                    waits = sorted(_waits(client.log(), began))
                    verdict.require(len(waits) == said, f"{name}: {len(waits)} of {said} commands were answered")
                    if waits:
                        p95 = waits[int(len(waits) * 0.95)]
                        verdict.measured[f"p95, {name}"] = p95
                        verdict.figures.append(
                            f"{name}: {len(waits)} answers, median {waits[len(waits) // 2]:.0f} ms, p95 {p95:.0f} ms"
                        )
                        verdict.require(p95 < MOST_P95, f"{name}: p95 {p95:.0f} ms, less than {MOST_P95:.0f} is wanted")
            finally:
                bot.kill()
    return verdict


def _waits(log: list[dict[str, object]], since: float) -> list[float]:
    """Milliseconds from each command to the end of its chat's next message."""
    answers: dict[object, list[float]] = defaultdict(list)
    for entry in log:
        if entry.get("method") == "sendMessage" and entry.get("stored"):
            answers[entry["chat"]].append(float(str(entry["at"])) + float(str(entry["ms"])) / 1000)
    found = []
    for entry in log:
        if entry.get("did") != "say" or float(str(entry["at"])) < since:
            continue
        ends = sorted(answers[entry["chat"]])
        place = bisect_right(ends, float(str(entry["at"])))
        if place < len(ends):
            found.append((ends[place] - float(str(entry["at"]))) * 1000)
    return found
