"""Housekeeping: periodiq's ticks only submit a task keyed (job, minute); the task does the work."""

from __future__ import annotations

import time
from typing import Any

import dramatiq
from periodiq import cron

from chronos.actor import actor
from chronos.broker import broker
from chronos.errors import PermanentError
from chronos.housekeeping import JOBS
from chronos.middleware.context import Context
from chronos.models.new_task import NewTask
from chronos.models.params import Housekeeping
from chronos.runtime import runtime


@actor(queue="system", params=Housekeeping)
def keep_house(params: Housekeeping, ctx: Context) -> dict[str, int]:
    if params.job not in JOBS:
        raise PermanentError(f"there is no housekeeping job {params.job!r}")
    return JOBS[params.job][1](runtime())


def tick(job: str) -> None:
    """Any number of ticks for the same minute make one task."""
    key = f"housekeeping:{job}:{int(time.time() // 60)}"
    runtime().submit(NewTask("system", "keep_house", {"job": job}, idempotency_key=key))


def _declare_tick(job: str, spec: str) -> Any:
    def tick_of_job() -> None:
        tick(job)

    declare = dramatiq.actor(actor_name=f"tick_{job}", queue_name="system", broker=broker(), periodic=cron(spec))
    return declare(tick_of_job)


TICKS = [_declare_tick(job, spec) for job, (spec, _) in JOBS.items()]
