"""A process that asks the budget for slots and prints when they were: URL BOT FIRST_CHAT COUNT."""

from __future__ import annotations

import asyncio
import json
import sys

from chronos.config import Settings
from chronos.db import Database
from chronos.telegram.budget import Budget
from chronos.telegram.urgency import BROADCAST


async def main(url: str, bot: int, first: int, count: int) -> None:
    budget = Budget(Database(url, Settings(), connections=1), bot, paid=True)
    ends = asyncio.get_running_loop().time() + 60
    passages = await asyncio.gather(*(budget.admit(first + n, "send", BROADCAST, ends) for n in range(count)))
    sys.stdout.write(json.dumps(sorted(passage.slot_at for passage in passages)))
    budget.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
