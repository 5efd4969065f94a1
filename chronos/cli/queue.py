"""chronos queue: list, pause, resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chronos.cli.output import AsJson, answer, table

if TYPE_CHECKING:
    from chronos.queue_control import QueueOverview

app = typer.Typer(no_args_is_help=True, help="See the queues; pause and resume them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="for example: post")]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """What waits, what is due and since when, what runs, limits, dead letters, pauses."""
    from chronos.queue_control import overview
    from chronos.runtime import runtime

    found = overview(runtime())
    numbers = ("waiting", "due", "oldest", "running", "dead", "workers")
    answer(found, as_json, table([_columns(queue) for queue in found], right=numbers))


def _columns(queue: QueueOverview) -> dict[str, str]:
    from chronos.durations import clock, in_words

    limits = [f"{queue.rate:g}/s"] if queue.rate else []
    limits += [f"{queue.concurrency} at once"] if queue.concurrency else []
    age = (queue.at - queue.oldest_due_at).total_seconds() if queue.oldest_due_at else None
    paused = f"until {clock(queue.paused_until, queue.at)}" if queue.paused_until else "until resumed"
    return {
        "queue": queue.queue,
        "waiting": _count(queue.waiting),
        "due": _count(queue.due),
        "oldest": "" if age is None else in_words(max(0.0, age)),
        "running": str(queue.running),
        "dead": _count(queue.dead),
        "workers": str(queue.workers),
        "limits": ", ".join(limits),
        "paused": paused if queue.paused else "",
    }


def _count(number: int) -> str:
    from chronos.queue_control import MOST_COUNTED

    return f"{number}+" if number >= MOST_COUNTED else str(number)


@app.command("pause")
def pause(
    name: Name,
    for_: Annotated[str | None, typer.Option("--for", help="how long, for example 10m; else until resumed")] = None,
    as_json: AsJson = False,
) -> None:
    """Start nothing more from this queue, delayed work included. What runs goes on."""
    from datetime import UTC, datetime

    from chronos.durations import clock, parse
    from chronos.queue_control import pause as stop
    from chronos.queues import policy_of
    from chronos.runtime import runtime

    policy_of(name)
    until = stop(runtime(), name, parse(for_) if for_ else None)
    words = f"until {clock(until, datetime.now(UTC))}" if until else f"until `chronos queue resume {name}`"
    answer({"queue": name, "paused": True, "paused_until": until}, as_json, [f"{name} is paused {words}"])


@app.command("resume")
def resume(name: Name, as_json: AsJson = False) -> None:
    """Let the queue go on."""
    from chronos.queue_control import resume as go_on
    from chronos.runtime import runtime

    was = go_on(runtime(), name)
    answer(
        {"queue": name, "paused": False, "was_paused": was},
        as_json,
        [f"{name} goes on" if was else f"{name} was not paused"],
    )
