"""3,000 messages over 3 processes at the paid rate, 15 % of the calls faulted: each is sent, not sent or unknown, and
the sandbox's log agrees; no call leaves inside a retry_after, and none above the rate.

Faults, evenly: 429 for the whole bot, 500, 502 with HTML, cut JSON, reset before and after it was stored, slow; and
every twentieth user has blocked the bot. Each message goes to a chat of its own. The workers stamp the moment at which
a call is let out: what it then waits for in a network or a busy server is not the product's.

Seen failing (250 messages) with BREAK=hold: 589 calls let out inside; with BREAK=doubt: 12 doubled.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from chaos.harness import Chaos, Stage
from chaos.verdicts import Counts, Verdict, shortened
from chronos.models.new_task import NewTask
from chronos.telegram.reasons import SENTENCES
from telegram_sandbox.client import Sandbox
from telegram_sandbox.process import SandboxProcess

FAULTS = ("429", "500", "502", "cut", "reset_before", "reset_after", "slow")
UNSURE = {"500", "502", "cut", "reset_before", "reset_after"}
PERCENT = 15.0
BOT, FIRST_USER = 1_000_000_001, 100_001
TOKEN = f"{BOT}:{'A' * 35}"
#: Every so manieth user has blocked the bot.
BLOCKED = 20
#: Seconds from Telegram's answer until every process knows of it: its way back, one commit, and the last look before
#: that. A call that is let out by then is on its way and cannot be called back.
KNOWN_EVERYWHERE = 0.1
BATCH = 1000


def run(chaos: Chaos, messages: int = 3000, processes: int = 3, threads: int = 8) -> Verdict:
    verdict = Verdict("sends")
    stamps = chaos.folder / "stamps"
    with SandboxProcess(chaos.folder / "sandbox") as sandbox:
        environment = {
            "CHRONOS_ACTORS": "chaos.breaks,chaos.senders",
            "CHRONOS_BOT_TOKEN": TOKEN,
            "CHRONOS_TELEGRAM_URL": sandbox.url,
            "CHRONOS_PAID_BROADCAST": "true",
            "CHAOS_STAMPS": str(stamps),
        }
        client = sandbox.client
        _invite(client, messages)
        with chaos.stage(verdict, threads=threads, queue="broadcast", environment=environment) as stage:
            stage.start(processes)
            client.fault(*FAULTS, percent=PERCENT, method="sendMessage", seconds=2, scope="bot", seed=chaos.seed)
            began = time.monotonic()
            for start in range(0, messages, BATCH):
                stage.runtime.submit(*map(_task, range(start, min(start + BATCH, messages))))
            stage.wait_until_final(600)
            seconds = time.monotonic() - began
            log = client.log(method="sendMessage", bot=BOT)
            _compare(verdict, stage, messages, log)
            _judge_holds(verdict, log, stamps)
            faults = Counter(entry["fault"] for entry in log if "fault" in entry)
            verdict.figures.append(
                f"{messages:,} messages in {seconds:.0f} s, {sum(faults.values())} faults in {len(log):,} calls: "
                + ", ".join(f"{number} {kind}" for kind, number in sorted(faults.items()))
            )
            verdict.measured["seconds"] = seconds
    return verdict


def _invite(client: Sandbox, users: int) -> None:
    client.bot(BOT)
    for number in range(users):
        id_ = FIRST_USER + number
        client.post("users", id=id_)
        client.start(as_=id_, bot=BOT)
        if number % BLOCKED == 0:
            client.block(id_, bot=BOT)


def _task(number: int) -> NewTask:
    chat = FIRST_USER + number
    # Without a chat of its own: no notice follows it, the log holds these messages and no others.
    return NewTask("broadcast", "say_to_one", {"key": str(number), "chat": chat}, bot_id=BOT)


def _compare(verdict: Verdict, stage: Stage, messages: int, log: list[dict[str, Any]]) -> None:
    """The tables against the log, key by key."""
    stored = Counter(entry["text"] for entry in log if entry.get("stored"))
    faults = defaultdict(set)
    for entry in log:
        faults[entry.get("text")].add(entry.get("fault"))
    rows = {
        row.key: row
        for row in stage.sql(
            "select t.params ->> 'key' as key, t.status, t.error_message as error, s.state, s.message_id"
            " from tasks t left join sends s on s.task_id = t.id"
        )
    }
    counts, remarks = Counts(), []
    outcomes: Counter[str] = Counter()
    for key in map(str, range(messages)):
        row, times = rows.get(key), stored[key]
        counts.doubled += max(0, times - 1)
        match row and (row.status, row.state):
            case ("completed", "sent") if times == 1 and row is not None and row.message_id is not None:
                outcomes["sent"] += 1
            case ("failed", "not_sent") if times == 0 and row is not None and row.error == SENTENCES["blocked"]:
                outcomes["not sent"] += 1
            case ("unknown", "unknown") if faults[key] & UNSURE:
                outcomes["unknown"] += 1
                counts.unknown += 1
            case None | ("pending" | "in_progress", _):
                counts.lost += 1
                remarks.append(f"message {key}: {row}, stored {times} times")
            case _:
                counts.unexpected += 1
                remarks.append(f"message {key}: {row}, stored {times} times")
    verdict.count(counts, shortened(remarks))
    agree = sum(outcomes.values())
    verdict.figures.append(
        f"{agree / messages:.2%} agree with the log: "
        + ", ".join(f"{number:,} {kind}" for kind, number in sorted(outcomes.items()))
    )


def _judge_holds(verdict: Verdict, log: list[dict[str, Any]], stamps: Path) -> None:
    """429s are for the whole bot: a call that is let out before the end of the last one's wait is inside."""
    left = defaultdict(list)
    for line in stamps.read_text(encoding="utf-8").splitlines():
        moment, _, key = line.partition(" ")
        left[key].append(float(moment))
    holds = sorted(
        (entry["at"] + entry["ms"] / 1000, entry["retry_after"]) for entry in log if entry.get("fault") == "429"
    )
    told = [at for at, _ in holds]
    ages, ways = [], []
    for key, moments in left.items():
        arrivals = [entry["at"] for entry in log if entry.get("text") == key]
        ways += [arrived - moment for arrived, moment in zip(arrivals, moments, strict=False)]
        for moment in moments:
            index = bisect_right(told, moment) - 1
            if index >= 0 and moment - told[index] < holds[index][1]:
                ages.append(moment - told[index])
    inside = sum(age > KNOWN_EVERYWHERE for age in ages)
    refused = sum(1 for entry in log if entry.get("limit") and not entry.get("inside_retry_after"))
    verdict.measured.update(inside=inside, refused=refused)
    verdict.figures.append(
        f"{len(holds)} holds of the whole bot: {inside} calls let out inside, {len(ages) - inside} before all knew"
        f" (at most {max(ages, default=0) * 1000:.0f} ms after); {refused} above the rate"
    )
    verdict.figures.append(
        f"from there to the sandbox: p50 {_ms(ways, 0.5)}, p99 {_ms(ways, 0.99)}, at most {_ms(ways, 1)}"
    )
    verdict.require(inside == 0, f"{inside} calls left inside a retry_after")
    verdict.require(refused == 0, f"{refused} calls were above Telegram's rate")


def _ms(seconds: list[float], part: float) -> str:
    return f"{sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * part))] * 1000:.0f} ms" if seconds else "-"
