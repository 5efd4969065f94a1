"""Writing an actor: a thin decorator over dramatiq.actor.

    @actor(queue="report", params=WeeklyReport)
    def weekly_report(params: WeeklyReport, ctx: Context) -> dict[str, int]:
        ...

Wrong params fail at submit, in one line. The function may be `async def`: all of them share one event loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import dramatiq
from dramatiq.asyncio import async_to_sync
from pydantic import BaseModel, ValidationError

from chronos.broker import broker
from chronos.engine.tasks import Claimed, Submitted
from chronos.errors import BadInput, PermanentError
from chronos.middleware.context import Context
from chronos.models.new_task import NewTask
from chronos.queues import policy_of
from chronos.runtime import runtime

P = TypeVar("P", bound=BaseModel)


class TaskActor(Generic[P]):
    """A declared actor: submit() it; calling .send() is refused."""

    def __init__(self, declared: Any, queue: str, params: type[P]) -> None:
        self.declared, self.queue, self.params = declared, queue, params
        self.name: str = declared.actor_name

    def task(self, params: P | dict[str, Any] | None = None, **facts: Any) -> NewTask:
        """A task to submit, its params checked: BadInput says what is wrong in one line."""
        return NewTask(self.queue, self.name, checked_params(self.name, self.params, params or {}), **facts)

    def submit(self, params: P | dict[str, Any] | None = None, **facts: Any) -> Submitted:
        return runtime().submit(self.task(params, **facts))[0]

    def send(self, *args: Any, **kwargs: Any) -> Any:
        return self.declared.send(*args, **kwargs)  # the broker refuses, and says why

    send_with_options = send


def checked_params(name: str, model: type[BaseModel], params: BaseModel | dict[str, Any]) -> dict[str, Any]:
    try:
        checked = params if isinstance(params, model) else model.model_validate(params)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "params"
        words = first["msg"].removeprefix("Value error, ")
        raise BadInput(f"params of {name}: {where}: {words[0].lower()}{words[1:]}") from None
    return checked.model_dump(mode="json")


def per_second(rate: float | str | None) -> float | None:
    """Rates are numbers per second, or texts: "100/min", "5/s", "20/h"."""
    if rate is None or isinstance(rate, int | float):
        return rate
    count, _, unit = rate.partition("/")
    seconds = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
    if unit.strip() not in seconds or not count.strip().replace(".", "", 1).isdigit():
        raise BadInput(f"rate {rate!r}: write it as 5/s, 100/min or 20/h")
    return float(count) / seconds[unit.strip()]


def actor(
    *,
    queue: str,
    params: type[P],
    name: str | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
    rate: float | str | None = None,
    on_requeued: Callable[[Claimed, str], None] | None = None,
) -> Callable[[Callable[[P, Context], Any]], TaskActor[P]]:
    """Declare an actor on a queue; timeout, concurrency and rate can narrow the queue's policy, never widen it."""
    policy = policy_of(queue)
    wanted_rate = per_second(rate)
    for what, value, most in (
        ("timeout", timeout, policy.time_limit),
        ("concurrency", concurrency, policy.concurrency),
        ("rate", wanted_rate, policy.rate),
    ):
        if value is not None and (value <= 0 or (most is not None and value > most)):
            raise BadInput(f"{what} {value} of an actor on {queue!r} must be above 0 and at most the queue's {most}")

    def declare(function: Callable[[P, Context], Any]) -> TaskActor[P]:
        call = async_to_sync(function) if inspect.iscoroutinefunction(function) else function
        declared_name = name or function.__name__

        def run(task: Claimed) -> None:
            context = Context(runtime(), task)
            try:
                checked = params.model_validate(task.params)
            except ValidationError as error:
                raise PermanentError(
                    f"the stored params do not fit {declared_name}: {error.errors()[0]['msg']}"
                ) from error
            result = call(checked, context)
            # Dramatiq would warn about a returned value, so it travels with the run.
            task.result = result
            if context.completed:
                task.committed = True
            else:
                context.refuse_doubts()

        run.__name__ = declared_name
        run.__module__ = function.__module__
        declared = dramatiq.actor(
            actor_name=declared_name,
            queue_name=queue,
            broker=broker(),
            params=params,
            time_limit=(timeout or policy.time_limit) * 1000,
            concurrency=concurrency,
            rate=wanted_rate,
            on_requeued=on_requeued,
        )(run)
        return TaskActor(declared, queue, params)

    return declare
