"""The commands. Each one asks the engine and shows the answer; `--json` gives it as data."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from chronos.errors import BadInput

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Durable tasks for a Telegram back office. Start with `chronos up`, then `chronos doctor`.",
)
task_app = typer.Typer(no_args_is_help=True, help="Submit, look at, explain, cancel and retry tasks.")
queue_app = typer.Typer(no_args_is_help=True, help="See the queues; pause and resume them.")
dlq_app = typer.Typer(no_args_is_help=True, help="Dead letters: what failed for good, grouped by cause.")
db_app = typer.Typer(no_args_is_help=True, help="The database's schema.")
for _name, _group in (("task", task_app), ("queue", queue_app), ("dlq", dlq_app), ("db", db_app)):
    app.add_typer(_group, name=_name)

AsJson = Annotated[bool, typer.Option("--json", help="the answer as JSON")]


def show(data: Any, as_json: bool, lines: list[str] | None = None) -> None:
    """Data as JSON, or as lines, or as a table of its rows."""
    if as_json:
        sys.stdout.write(json.dumps(data, default=str, ensure_ascii=False) + "\n")
        return
    if lines is not None:
        sys.stdout.write("\n".join(lines) + "\n")
        return
    from rich.console import Console
    from rich.table import Table

    rows = data if isinstance(data, list) else [data]
    if not rows:
        sys.stdout.write("nothing\n")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in rows[0]:
        table.add_column(str(name))
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    Console(soft_wrap=True).print(table)


def _runtime() -> Any:
    from chronos.runtime import runtime

    return runtime()


def _rows(sql: str, **values: Any) -> list[dict[str, Any]]:
    from sqlalchemy import text

    database = _runtime().database

    def read() -> list[dict[str, Any]]:
        with database.statement() as connection:
            result = connection.execute(text(sql), values)
            return [dict(row._mapping) for row in result] if result.returns_rows else []

    return list(database.persist(read, deadline=5))


def _duration(value: str) -> timedelta:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    if len(value) < 2 or value[-1] not in units or not value[:-1].isdigit():
        raise BadInput(f"{value!r} is no duration: write 30s, 10m, 2h or 1d")
    return timedelta(seconds=int(value[:-1]) * units[value[-1]])


def _moment(value: str | None) -> datetime | None:
    """An ISO time with its zone, or a duration from now."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return datetime.now(UTC) + _duration(value)
    if moment.tzinfo is None:
        raise BadInput(f"{value} has no time zone: write {value}+00:00, or a duration such as 10m")
    return moment


# ------------------------------------------------------------------------------------------------ task


@task_app.command("submit")
def task_submit(
    name: Annotated[str, typer.Argument(help="the actor, for example: ping")],
    params: Annotated[str, typer.Argument(help="its params as JSON")] = "{}",
    queue: Annotated[str | None, typer.Option(help="only to be sure: the actor's own queue is used")] = None,
    key: Annotated[str | None, typer.Option(help="idempotency key: the same key is the same task")] = None,
    priority: Annotated[int, typer.Option(help="1 first ... 9 last")] = 5,
    at: Annotated[str | None, typer.Option(help="not before: ISO time with zone, or 10m")] = None,
    expires: Annotated[str | None, typer.Option(help="not after: ISO time with zone, or 10m")] = None,
    as_json: AsJson = False,
) -> None:
    """Accept a task: when this returns, it is durable."""
    from chronos.actor import checked_params
    from chronos.queues import policy_of

    if queue is not None:
        policy_of(queue)
    from chronos.actors import broker
    from chronos.engine.tasks import NewTask

    try:
        data = json.loads(params)
    except ValueError as error:
        raise BadInput(f"params are not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadInput('params must be a JSON object, such as {"say": "hello"}')
    actor = broker.actors.get(name)
    if actor is None or "params" not in actor.options:
        known = ", ".join(sorted(n for n, a in broker.actors.items() if "params" in a.options))
        raise BadInput(f"unknown task {name!r}: known are {known}")
    if queue is not None and queue != actor.queue_name:
        raise BadInput(f"{name} lives in queue {actor.queue_name!r}, not in {queue!r}")
    checked = checked_params(name, actor.options["params"], data)
    done = _runtime().submit(
        NewTask(
            actor.queue_name, name, checked, priority=priority, run_at=_moment(at), expires_at=_moment(expires),
            idempotency_key=key,
        )
    )[0]  # fmt: skip
    words = f"accepted: {done.id}" if done.created else f"already there: {done.id}"
    show({"id": done.id, "created": done.created}, as_json, [words])


@task_app.command("list")
def task_list(
    status: Annotated[str | None, typer.Option(help="pending, in_progress, completed, failed, ...")] = None,
    queue: Annotated[str | None, typer.Option()] = None,
    limit: Annotated[int, typer.Option(min=1, max=10000)] = 20,
    as_json: AsJson = False,
) -> None:
    """The newest tasks first."""
    show(
        _rows(
            "select id, queue, task_name, status, attempt || '/' || max_attempts as runs, created_at, error_message"
            " from tasks where (cast(:s as text) is null or status = :s) and (cast(:q as text) is null or queue = :q)"
            " order by id desc limit :n",
            s=status, q=queue, n=limit,
        ),
        as_json,
    )  # fmt: skip


def _find(id_: str) -> Any:
    from chronos.engine import tasks

    with _runtime().database.statement() as connection:
        return tasks.find(connection, id_)


@task_app.command("show")
def task_show(id_: Annotated[str, typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
    """All facts of one task."""
    from chronos.logs import redacted

    record = redacted(_find(id_).model_dump(mode="json"))
    show(record, as_json, [f"{name:20} {value}" for name, value in record.items() if value is not None])


@task_app.command("explain")
def task_explain(id_: Annotated[str, typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
    """Its story, and why it is not running."""
    from chronos.cli.explain import explain

    story = explain(_runtime(), _find(id_))
    show(story, as_json, [story["now"], *(f"  {e['at']}  {e['what']}" for e in story["events"])])


@task_app.command("cancel")
def task_cancel(id_: Annotated[str, typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
    """A queued task at once; a running one is asked to stop."""
    from chronos.engine import tasks

    record = _find(id_)
    with _runtime().database.statement() as connection:
        status = tasks.cancel(connection, record.id, "cli")
    if status is None:
        raise BadInput(f"task {record.id} is {record.status}: there is nothing to cancel")
    words = "cancelled" if status == "cancelled" else "asked to stop: its actor will see it"
    show({"id": record.id, "status": status}, as_json, [words])


@task_app.command("retry")
def task_retry(id_: Annotated[str, typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
    """Run a failed or unknown task again, with all its attempts."""
    from chronos.engine import tasks

    record = _find(id_)
    with _runtime().database.statement() as connection:
        if not tasks.revive(connection, [record.id], "cli"):
            raise BadInput(
                f"task {record.id} is {record.status}: only failed and unknown ones can be retried"
            )
    show({"id": record.id, "status": "pending"}, as_json, ["pending again"])


# ----------------------------------------------------------------------------------------------- queue


@queue_app.command("list")
def queue_list(as_json: AsJson = False) -> None:
    """Depth, what runs, what is dead, and pauses."""
    from chronos.queues import POLICIES

    rows = _rows(
        "select q.queue, (select count(*) from tasks t where t.queue = q.queue and t.status = 'pending') as waiting,"
        " (select count(*) from tasks t where t.queue = q.queue and t.status = 'in_progress') as running,"
        " (select count(*) from dead_letters d where d.original_queue = q.queue and d.retried_at is null) as dead,"
        " case when s.paused_at is not null and coalesce(s.paused_until > clock_timestamp(), true)"
        " then coalesce('until ' || s.paused_until, 'yes') end as paused"
        " from unnest(cast(:queues as text[])) q(queue) left join queue_states s on s.queue = q.queue",
        queues=list(POLICIES),
    )
    show(rows, as_json)


@queue_app.command("pause")
def queue_pause(
    name: str,
    for_: Annotated[
        str | None, typer.Option("--for", help="how long, for example 10m; else until resumed")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start nothing more from this queue, delayed work included. What runs goes on."""
    from chronos.queues import policy_of

    policy_of(name)
    seconds = _duration(for_).total_seconds() if for_ else None
    _rows(
        "insert into queue_states (queue, paused_at, paused_until) values (:q, clock_timestamp(),"
        " clock_timestamp() + cast(:s as float) * interval '1 second') on conflict (queue) do update"
        " set paused_at = excluded.paused_at, paused_until = excluded.paused_until",
        q=name, s=seconds,
    )  # fmt: skip
    show({"queue": name, "paused": True}, as_json, [f"{name} is paused" + (f" for {for_}" if for_ else "")])


@queue_app.command("resume")
def queue_resume(name: str, as_json: AsJson = False) -> None:
    """Let the queue go on."""
    from chronos.queues import policy_of

    policy_of(name)
    _rows("update queue_states set paused_at = null, paused_until = null where queue = :q", q=name)
    _runtime().database.notify(f"due {name}")
    show({"queue": name, "paused": False}, as_json, [f"{name} goes on"])


# ------------------------------------------------------------------------------------------------- dlq

_FILTER = (
    " retried_at is null and (cast(:id as text) is null or id::text = :id or task_id::text = :id)"
    " and (cast(:q as text) is null or original_queue = :q)"
    " and (cast(:c as text) is null or fingerprint like :c || '%')"
)
Which = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="one dead letter or task; else use a filter")
]
OfQueue = Annotated[str | None, typer.Option("--queue")]
OfCause = Annotated[str | None, typer.Option("--cause", help="the cause that `dlq list` shows")]
All = Annotated[bool, typer.Option("--all")]


def _chosen(id_: str | None, queue: str | None, cause: str | None, everything: bool) -> dict[str, Any]:
    if not (id_ or queue or cause or everything):
        raise BadInput("which ones? give an ID, --queue, --cause or --all")
    return {"id": id_, "q": queue, "c": cause}


@dlq_app.command("list")
def dlq_list(queue: OfQueue = None, as_json: AsJson = False) -> None:
    """Grouped by cause, the most frequent first."""
    show(
        _rows(
            "select left(fingerprint, 8) as cause, original_queue as queue, count(*) as count,"
            " min(failure_reason) as reason, max(failed_at) as last from dead_letters where"
            + _FILTER
            + " group by 1, 2 order by 3 desc limit 100",
            id=None, q=queue, c=None,
        ),
        as_json,
    )  # fmt: skip


@dlq_app.command("show")
def dlq_show(
    id_: Which = None, queue: OfQueue = None, cause: OfCause = None, as_json: AsJson = False
) -> None:
    """Dead letters in full, in the shape of the queue's jobs."""
    from chronos.logs import redacted

    rows = _rows(
        'select id, original_queue as "originalQueue", original_job_id as "originalJobId", original_job_data as'
        ' "originalJobData", failure_reason as "failureReason", attempts_made as "attemptsMade", failed_at as'
        ' "failedAt", error_class as "errorClass", traceback from dead_letters where'
        + _FILTER
        + " order by failed_at desc limit 20",
        **_chosen(id_, queue, cause, False),
    )
    rows = redacted(rows)
    if not rows:
        raise BadInput("there is no such dead letter")
    show(rows, as_json, [f"{name:16} {value}" for row in rows for name, value in [*row.items(), ("", "")]])


@dlq_app.command("retry")
def dlq_retry(
    id_: Which = None,
    queue: OfQueue = None,
    cause: OfCause = None,
    everything: All = False,
    as_json: AsJson = False,
) -> None:
    """Run them again, with all their attempts."""
    from chronos.engine import tasks

    chosen = _chosen(id_, queue, cause, everything)
    ids = [
        row["task_id"]
        for row in _rows("select task_id from dead_letters where task_id is not null and" + _FILTER, **chosen)
    ]
    revived = 0
    for start in range(0, len(ids), 500):
        with _runtime().database.statement() as connection:
            revived += len(tasks.revive(connection, ids[start : start + 500], "cli"))
    show({"retried": revived}, as_json, [f"{revived} pending again"])


@dlq_app.command("clear")
def dlq_clear(
    id_: Which = None,
    queue: OfQueue = None,
    cause: OfCause = None,
    everything: All = False,
    as_json: AsJson = False,
) -> None:
    """Forget them; with --all also what lies in RabbitMQ's dead-letter queues."""
    chosen = _chosen(id_, queue, cause, everything)
    gone = _rows(
        "with gone as (delete from dead_letters where" + _FILTER + " returning 1) select count(*) from gone",
        **chosen,
    )
    if everything:
        from chronos.housekeeping import purge_dead_messages

        purge_dead_messages(_runtime())
    show({"cleared": gone[0]["count"]}, as_json, [f"{gone[0]['count']} cleared"])


# -------------------------------------------------------------------------------------------------- db


@db_app.command("upgrade")
def db_upgrade(as_json: AsJson = False) -> None:
    """Bring the database to the schema of this code."""
    from chronos.engine import schema

    runtime = _runtime()
    runtime.database.persist(lambda: schema.upgrade(runtime.database), deadline=30)
    show({"schema": schema.expected()}, as_json, [f"the schema is at {schema.expected()}"])


@db_app.command("status")
def db_status(as_json: AsJson = False) -> None:
    """Which schema the database has, and which this code needs."""
    from chronos.engine import schema

    found, wanted = schema.current(_runtime().database), schema.expected()
    words = (
        "up to date"
        if found == wanted
        else f"the database has {found}, this code needs {wanted}: `chronos db upgrade`"
    )
    show({"found": found, "expected": wanted}, as_json, [words])
    if found != wanted:
        raise typer.Exit(1)


# --------------------------------------------------------------------------------------------- the rest


@app.command()
def config(as_json: AsJson = False) -> None:
    """Every setting: name, value (secrets hidden), default, meaning."""
    from chronos.config import Settings, settings

    values = settings()
    rows = [
        {
            "name": f"CHRONOS_{name.upper()}",
            "value": getattr(values, name),
            "default": field.get_default(call_default_factory=True),
            "meaning": field.description,
        }
        for name, field in Settings.model_fields.items()
    ]
    show(rows, as_json)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check settings, PostgreSQL, RabbitMQ, schema and clock, then send a task through the whole pipeline."""
    from chronos.cli.doctor import examine

    findings = examine(_runtime())
    show(
        findings,
        as_json,
        [f"{'ok  ' if f['ok'] else 'FAIL'} {f['check']:12} {f['words']}" for f in findings],
    )
    if not all(f["ok"] for f in findings):
        raise typer.Exit(1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def worker(context: typer.Context) -> None:
    """`dramatiq chronos.actors` under a supervisor that restarts it; Dramatiq's own flags go through (-p, -t, -Q)."""
    from chronos.cli.supervisor import supervise

    raise typer.Exit(supervise(context.args))


@app.command()
def up(
    rabbitmq: Annotated[
        bool, typer.Option("--rabbitmq", help="a private RabbitMQ instead of the in-process broker")
    ] = False,
) -> None:
    """Start everything on embedded parts in this terminal."""
    from chronos.embedded import up as start

    raise typer.Exit(start(rabbitmq))
