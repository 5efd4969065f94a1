"""chronos task: submit, list, show, explain, cancel, retry, arrived."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronos.cli.output import AsJson, answer, shown, table
from chronos.errors import BadInput

if TYPE_CHECKING:
    from chronos.models import TaskStateRecord
    from chronos.task_list import TaskLine

app = typer.Typer(no_args_is_help=True, help="Submit, look at, explain, cancel and retry tasks.")

Id = Annotated[str, typer.Argument(metavar="ID", help="a task's id, or enough of its beginning")]


@app.command("submit")
def submit(
    name: Annotated[str, typer.Argument(help="the actor, for example: ping")],
    params: Annotated[str, typer.Argument(help="its params as JSON; @FILE reads a file, - standard input")] = "{}",
    queue: Annotated[str | None, typer.Option(help="only to be sure: the actor's own queue is used")] = None,
    key: Annotated[str | None, typer.Option(help="idempotency key: the same key is the same task")] = None,
    priority: Annotated[int, typer.Option(help="1 first ... 9 last")] = 5,
    at: Annotated[str | None, typer.Option(help="not before: ISO time with zone, or 10m")] = None,
    chat: Annotated[int | None, typer.Option(help="numeric id of the Telegram chat that gets what it makes")] = None,
    user: Annotated[int | None, typer.Option(help="numeric Telegram id of the person it is for")] = None,
    expires: Annotated[str | None, typer.Option(help="not after: ISO time with zone, or 10m")] = None,
    as_json: AsJson = False,
) -> None:
    """Accept a task: when this returns, it is durable."""
    from chronos.durations import moment
    from chronos.queues import policy_of

    if queue is not None:
        policy_of(queue)
    data = _params(params)
    run_at, expires_at = moment(at) if at else None, moment(expires) if expires else None
    from chronos.actor import checked_params
    from chronos.actors import broker
    from chronos.models.new_task import NewTask
    from chronos.runtime import runtime

    actor = broker.actors.get(name)
    if actor is None or "params" not in actor.options:
        known = ", ".join(sorted(n for n, a in broker.actors.items() if "params" in a.options))
        raise BadInput(f"unknown task {name!r}: known are {known}; CHRONOS_ACTORS names modules with more")
    if queue is not None and queue != actor.queue_name:
        raise BadInput(f"{name} lives in queue {actor.queue_name!r}, not in {queue!r}")
    new = NewTask(
        actor.queue_name, name, checked_params(name, actor.options["params"], data), priority=priority,
        run_at=run_at, expires_at=expires_at, idempotency_key=key, chat=chat, user_id=user,
    )  # fmt: skip
    done = runtime().submit(new)[0]
    words = f"accepted: {done.id}" if done.created else f"already there: {done.id}"
    answer({"id": done.id, "created": done.created}, as_json, [words])


def _params(given: str) -> dict[str, Any]:
    where = "params"
    if given == "-":
        given, where = sys.stdin.read(), "standard input"
    elif given.startswith("@"):
        where = given[1:]
        try:
            given = Path(where).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise BadInput(f"{where} is no UTF-8 text") from None
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot read {where}: {getattr(error, 'strerror', None) or error}") from None
    try:
        data = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadInput(f'{where}: params must be a JSON object, such as {{"say": "hello"}}')
    return data


@app.command("list")
def list_(
    status: Annotated[str | None, typer.Option(help="pending, in_progress, completed, failed, ...")] = None,
    queue: Annotated[str | None, typer.Option()] = None,
    name: Annotated[str | None, typer.Option(help="of one actor")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10000)] = 20,
    as_json: AsJson = False,
) -> None:
    """The newest tasks first."""
    from chronos.runtime import runtime
    from chronos.task_list import newest

    found = newest(runtime(), status=status, queue=queue, name=name, most=limit)
    lines = table([_columns(line) for line in found], wide="note") or ["no tasks"]
    answer(found, as_json, lines)


def _columns(line: TaskLine) -> dict[str, str]:
    from chronos.durations import in_words, relative

    note = line.error_message or ""
    if line.status == "pending" and line.run_at > line.at:
        note = f"{relative(line.run_at, line.at)}{f' after: {note}' if note else ''}"
    elif line.status == "in_progress" and line.progress and line.progress.get("total"):
        note = f"{100 * line.progress['done'] / line.progress['total']:.0f} %"
    elif line.status == "completed" and line.started_at and line.finished_at:
        note = f"took {in_words(max(0.0, (line.finished_at - line.started_at).total_seconds()))}"
    return {
        "id": line.short_id,
        "queue": line.queue,
        "task": line.task_name,
        "status": line.status,
        "runs": f"{line.attempt}/{line.max_attempts}",
        "created": relative(line.created_at, line.at),
        "note": " ".join(note.split()),
    }


def _find(id_: str) -> TaskStateRecord:
    from chronos.engine import tasks
    from chronos.runtime import runtime

    with runtime().database.statement() as connection:
        return tasks.find(connection, id_)


@app.command("show")
def show(id_: Id, as_json: AsJson = False) -> None:
    """All facts of one task."""
    from chronos.logs import redacted

    record = redacted(_find(id_).model_dump(mode="json"))
    answer(
        record,
        as_json,
        [f"{name:<20} {shown(value)}" for name, value in record.items() if value is not None],
    )


@app.command("explain")
def explain(id_: Id, as_json: AsJson = False) -> None:
    """Its story, why it is not running, and when it will move."""
    from datetime import UTC, datetime

    from chronos.durations import clock, relative
    from chronos.explain import explain as tell
    from chronos.runtime import runtime

    story = tell(runtime(), _find(id_))
    now = datetime.now(UTC)
    lines = [story.now]
    if story.moves_at is not None and story.moves_at > now:
        word = "ends at the latest at" if story.status == "in_progress" else "moves at"
        lines.append(f"  {word} {clock(story.moves_at, now)}, {relative(story.moves_at, now)}")
    lines += [f"  try  {command}" for command in story.advice]
    lines += ["", *(f"  {clock(event.at, now)}  {event.what}" for event in story.events)]
    answer(story, as_json, lines)


@app.command("cancel")
def cancel(id_: Id, as_json: AsJson = False) -> None:
    """A queued task at once; a running one is asked to stop."""
    from chronos.engine import tasks
    from chronos.runtime import runtime

    record = _find(id_)
    with runtime().database.statement() as connection:
        status = tasks.cancel(connection, record.id, "cli")
    if status is None:
        raise BadInput(f"task {record.id} is {record.status}: there is nothing to cancel")
    words = "cancelled" if status == "cancelled" else "asked to stop: its actor will see it"
    answer({"id": record.id, "status": status}, as_json, [words])


@app.command("retry")
def retry(id_: Id, as_json: AsJson = False) -> None:
    """Run a failed or unknown task again, with all its attempts; an unknown effect may be made again."""
    from chronos.engine import tasks
    from chronos.runtime import runtime

    record = _find(id_)
    with runtime().database.statement() as connection:
        if not tasks.revive(connection, [record.id], "cli"):
            raise BadInput(f"task {record.id} is {record.status}: only failed and unknown ones can be retried")
    answer({"id": record.id, "status": "pending"}, as_json, ["pending again"])


@app.command("arrived")
def arrived(id_: Id, as_json: AsJson = False) -> None:
    """Settle an unknown task: you saw that it arrived, so it is completed and nothing is sent again."""
    from chronos.engine import tasks
    from chronos.runtime import runtime

    record = _find(id_)
    with runtime().database.statement() as connection:
        if not tasks.mark_arrived(connection, record.id, "cli"):
            raise BadInput(f"task {record.id} is {record.status}: only an unknown one can have arrived")
    answer({"id": record.id, "status": "completed"}, as_json, ["completed: it arrived"])
