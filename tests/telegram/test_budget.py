"""The bot's budget: one for all processes, the urgent first, nothing inside a hold. PostgreSQL's own clock judges."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from chronos.config import Settings
from chronos.db import Database
from chronos.errors import Later
from chronos.runtime import Runtime
from chronos.telegram.budget import RATES, SLOT_GOOD, BotStopped, Budget, Passage
from chronos.telegram.urgency import BROADCAST, NOTICE, POST, REPLY, URGENCIES, Urgency
from tests.processes import ROOT

BOT, GROUP = 7, -1001


@pytest.fixture
def connect(database_url: str) -> Iterator[Callable[..., Budget]]:
    made: list[Budget] = []

    def connect(*, paid: bool = False) -> Budget:
        made.append(Budget(Database(database_url, Settings(), connections=1), BOT, paid=paid))
        return made[-1]

    yield connect
    for budget in made:
        budget.close()


async def ask(
    budget: Budget, chat: int | None, urgency: Urgency = NOTICE, patience: float = 30.0, **how: Any
) -> Passage:
    ends = asyncio.get_running_loop().time() + patience
    passage = await budget.admit(chat, how.pop("counts", "send"), urgency, ends, **how)
    while not await budget.is_good(passage, urgency):
        passage = await budget.admit(chat, "send", urgency, ends)
    return passage


def run(*asks: Coroutine[Any, Any, Any]) -> list[Any]:
    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*asks, return_exceptions=True)

    return asyncio.run(all_of_them())


def slots(passages: list[Passage]) -> list[float]:
    return sorted(passage.slot_at for passage in passages)


def distances(moments: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(moments)]


def sql(runtime: Runtime, statement: str, **facts: Any) -> list[Any]:
    with runtime.database.statement() as connection:
        result = connection.execute(text(statement), facts)
        return list(result) if result.returns_rows else []


def test_a_bot_sends_as_often_as_its_rate_allows_and_not_more(connect: Callable[..., Budget]) -> None:
    budget = connect()
    given = slots(run(*(ask(budget, chat) for chat in range(1, 21))))
    assert min(distances(given)) == pytest.approx(RATES["unpaid"], abs=1e-4)


def test_all_processes_share_one_budget(database_url: str, connect: Callable[..., Budget]) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.telegram.asker", database_url, str(BOT), str(1000 * n), "300"],
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        for n in (1, 2, 3)
    ]
    given = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    moments = sorted(moment for one in given for moment in one)
    assert len(moments) == 900
    assert min(distances(moments)) >= RATES["paid"] - 1e-4
    assert all(one[0] < moments[-1] - 0.2 and one[-1] > moments[0] + 0.2 for one in given), "they took turns"


def test_a_chat_has_a_burst_of_three_and_then_one_a_second(connect: Callable[..., Budget]) -> None:
    budget = connect()
    given = slots(run(*(ask(budget, 5) for _ in range(5))))
    assert given[2] - given[0] < 0.5
    assert given[3] - given[0] >= RATES["chat"]["step"] - 1e-4
    assert given[4] - given[0] >= 2 * RATES["chat"]["step"] - 1e-4


def test_a_chat_that_waits_keeps_nobody_else_waiting(connect: Callable[..., Budget]) -> None:
    budget = connect()

    async def all_of_them() -> tuple[list[Passage], list[Passage]]:
        busy = [asyncio.create_task(ask(budget, 5)) for _ in range(5)]
        others = await asyncio.gather(*(ask(budget, chat) for chat in range(100, 110)))
        return list(await asyncio.gather(*busy)), list(others)

    busy, others = asyncio.run(all_of_them())
    assert slots(others)[-1] < slots(busy)[3]


@pytest.mark.parametrize(("kind", "most"), [(None, 6), ("group", 6), ("supergroup", 6), ("channel", 3)])
def test_a_group_has_its_own_rate_and_a_channel_is_none(
    runtime: Runtime, connect: Callable[..., Budget], kind: str | None, most: int
) -> None:
    if kind is not None:
        sql(runtime, "insert into chats (bot_id, id, kind) values (:bot, :id, :kind)", bot=BOT, id=GROUP, kind=kind)
    budget = connect()
    given = run(*(ask(budget, GROUP, patience=0.5) for _ in range(10)))
    assert sum(isinstance(one, Passage) for one in given) == most
    refused = [one for one in given if isinstance(one, Later)]
    assert {one.reason for one in refused} == {"chat limit"}


def test_edits_cost_a_private_chat_nothing_and_a_group_its_own_count(connect: Callable[..., Budget]) -> None:
    budget = connect()
    given = run(*(ask(budget, 5, counts="edit") for _ in range(10)))
    assert distances(slots(given))[0] == pytest.approx(RATES["unpaid"], abs=1e-4), "but the bot counts them"
    in_group = run(*(ask(budget, GROUP, counts="edit", patience=0.5) for _ in range(8)))
    assert sum(isinstance(one, Passage) for one in in_group) == 6
    assert isinstance(run(ask(budget, GROUP, patience=0.5))[0], Passage), "messages are counted apart"


def test_what_nobody_can_pay_for_keeps_the_unpaid_rate(connect: Callable[..., Budget]) -> None:
    budget = connect(paid=True)
    paid = slots(run(*(ask(budget, chat) for chat in range(1, 11))))
    unpaid = slots(run(*(ask(budget, chat, counts="edit", unpaid=True) for chat in range(1, 11))))
    assert min(distances(paid)) == pytest.approx(RATES["paid"], abs=1e-4)
    assert min(distances(unpaid)) == pytest.approx(RATES["unpaid"], abs=1e-4)


def test_an_album_takes_as_many_slots_as_it_has_messages(connect: Callable[..., Budget]) -> None:
    budget = connect()

    async def album_then_another() -> list[float]:
        first = await ask(budget, 5, size=10)
        return [first.slot_at, (await ask(budget, 6)).slot_at]

    first, second = asyncio.run(album_then_another())
    assert second - first == pytest.approx(10 * RATES["unpaid"], abs=1e-3)


def test_a_flood_of_broadcasts_does_not_delay_a_reply(connect: Callable[..., Budget]) -> None:
    """By the slots themselves: a reply's own comes within the broadcasts' tolerance of the moment that it asked."""
    flood, people = connect(), connect()

    async def both() -> list[float]:
        broadcasts = [asyncio.create_task(ask(flood, chat, BROADCAST)) for chat in range(1, 60)]
        waits = []
        for chat in range(1000, 1010):
            await asyncio.sleep(0)
            with flood._database.statement() as connection:
                asked = connection.execute(text("select extract(epoch from clock_timestamp())::float")).scalar_one()
            waits.append(((await ask(people, chat, REPLY)).slot_at - asked, asked))
        await asyncio.gather(*broadcasts)
        return [wait for wait, _ in waits]

    waits = asyncio.run(both())
    # Slots are given 37 ms apart: what had been reserved before it, and one slot.
    assert max(waits) <= REPLY.tolerance
    assert sorted(waits)[len(waits) // 2] <= BROADCAST.tolerance + 2 * RATES["unpaid"]


def test_the_more_urgent_are_served_first(runtime: Runtime, connect: Callable[..., Budget]) -> None:
    budget = connect()
    # All want to leave at once while the bot has no slot for 0.3 s.
    sql(
        runtime,
        "insert into budgets (key, tat) values (:key, clock_timestamp() + interval '1.2 seconds')",
        key=f"bot:{BOT}",
    )

    async def all_of_them() -> list[tuple[float, int]]:
        async def one(urgency: Urgency, chat: int) -> tuple[float, int]:
            return (await ask(budget, chat, urgency)).slot_at, URGENCIES.index(urgency)

        asks = [one(urgency, 10 * n + k) for n, urgency in enumerate(reversed(URGENCIES)) for k in range(2)]
        return sorted(await asyncio.gather(*asks))

    order = [place for _, place in asyncio.run(all_of_them())]
    assert order == sorted(order)


def test_tolerances_fall_with_urgency() -> None:
    assert [one.tolerance for one in URGENCIES] == sorted((one.tolerance for one in URGENCIES), reverse=True)
    assert (REPLY.tolerance, BROADCAST.tolerance) == (1.0, 0.05)


def test_a_call_that_would_wait_too_long_is_told_when_to_come(runtime: Runtime, connect: Callable[..., Budget]) -> None:
    budget = connect()
    sql(runtime, "insert into budgets (key, tat) values ('bot:7', clock_timestamp() + interval '1 minute')")
    (refused,) = run(ask(budget, 5, BROADCAST, BROADCAST.patience))
    assert isinstance(refused, Later)
    assert refused.reason == "budget"
    assert 55 < refused.seconds < 63


# ------------------------------------------------------------------------------------------------ holds


def hold(budget: Budget, chat: int | None, seconds: float) -> None:
    asyncio.run(budget.hold(chat, seconds))


def held(budget: Budget, chat: int | None, **how: Any) -> bool:
    (answer,) = run(ask(budget, chat, patience=0.0, **how))
    if isinstance(answer, Passage):
        return False
    assert isinstance(answer, Later)
    return answer.reason == "busy"


def test_a_429_of_a_private_chat_holds_the_whole_bot_in_every_process(connect: Callable[..., Budget]) -> None:
    here, elsewhere = connect(), connect()
    hold(here, 5, 30)
    for budget in (here, elsewhere):
        assert held(budget, 5)
        assert held(budget, 6)
        assert held(budget, 6, counts="edit")
        assert held(budget, 6, counts="nothing")
        assert held(budget, None, counts="nothing")


def test_a_429_of_a_group_holds_the_group(connect: Callable[..., Budget]) -> None:
    here, elsewhere = connect(), connect()
    hold(here, GROUP, 30)
    assert held(elsewhere, GROUP)
    assert held(elsewhere, GROUP, counts="edit")
    assert not held(elsewhere, 6)


def test_a_429_of_a_chat_over_its_own_rate_holds_the_chat(connect: Callable[..., Budget]) -> None:
    here, elsewhere = connect(), connect()
    run(*(ask(here, 5) for _ in range(3)))
    hold(here, 5, 30)
    assert held(elsewhere, 5)
    assert not held(elsewhere, 6)


def test_a_429_of_a_second_chat_holds_the_whole_bot(connect: Callable[..., Budget]) -> None:
    here, elsewhere = connect(), connect()
    hold(here, GROUP, 30)
    assert not held(elsewhere, 6)
    hold(here, GROUP - 1, 30)
    assert held(elsewhere, 6)


def test_a_second_hold_is_never_shorter_than_the_first(runtime: Runtime, connect: Callable[..., Budget]) -> None:
    budget = connect()
    hold(budget, 5, 300)
    hold(budget, 5, 1)
    left = sql(runtime, "select min(held_until) > clock_timestamp() + interval '290 seconds' from budgets")
    assert left == [(True,)]


def test_a_slot_given_before_a_429_elsewhere_is_asked_for_again(
    runtime: Runtime, connect: Callable[..., Budget]
) -> None:
    """The slot is ahead; when its moment comes the hold of another process is known."""
    here, elsewhere = connect(), connect()
    sql(runtime, "insert into budgets (key, tat) values ('bot:7', clock_timestamp() + interval '0.9 seconds')")

    async def both() -> Any:
        waiting = asyncio.create_task(ask(here, 5, REPLY, patience=2.0))
        reserved = "select 1 from budgets where tat > clock_timestamp() + interval '0.2 s' and key ~ 'chat'"
        while not sql(runtime, reserved):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await elsewhere.hold(6, 30)
        return (await asyncio.gather(waiting, return_exceptions=True))[0]

    refused = asyncio.run(both())
    assert isinstance(refused, Later)
    assert refused.reason == "busy"


def test_a_slot_that_is_late_is_lost(connect: Callable[..., Budget]) -> None:
    budget = connect()

    async def late() -> bool:
        passage = await ask(budget, 5)
        passage.slot -= 2 * SLOT_GOOD
        return await budget.is_good(passage, NOTICE)

    assert asyncio.run(late()) is False


def test_a_stopped_bot_sends_nothing(runtime: Runtime, connect: Callable[..., Budget]) -> None:
    budget = connect()
    sql(runtime, "insert into bots (id, stopped_at, stopped_why) values (7, now(), '401')")
    (refused,) = run(ask(budget, 5, POST))
    assert isinstance(refused, BotStopped)
    sql(runtime, "update bots set stopped_at = null, stopped_why = null")
    assert isinstance(run(ask(budget, 5, POST))[0], Passage)


def test_a_chat_that_moved_is_asked_for_under_its_new_id(runtime: Runtime, connect: Callable[..., Budget]) -> None:
    budget = connect()
    sql(runtime, "insert into chats (bot_id, id, kind, migrated_to) values (7, -5, 'group', -1005)")
    (passage,) = run(ask(budget, -5))
    assert (passage.chat, passage.moved) == (-1005, -1005)
    assert sql(runtime, "select key from budgets where key like 'chat%'") == [("chat:7:-1005",)]


def test_while_postgresql_is_away_people_are_answered_and_all_else_waits() -> None:
    nowhere = Database("postgresql://nobody@127.0.0.1:1/none", Settings(), connections=1)
    budget = Budget(nowhere, BOT)
    reply, again, broadcast = run(ask(budget, 5, REPLY), ask(budget, 6, REPLY), ask(budget, 5, BROADCAST))
    assert isinstance(reply, Passage)
    assert again.slot - reply.slot == pytest.approx(0.1, abs=0.05), "slowly"
    assert isinstance(broadcast, Later)
    assert broadcast.reason == "database"
    budget.close()
