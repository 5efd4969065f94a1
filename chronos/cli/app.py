"""The commands that are no nouns: config, doctor, worker, up. Each asks a module below and shows the answer."""

from __future__ import annotations

from typing import Annotated

import typer

from chronos.cli import db, dlq, queue, report, sandbox, task, user
from chronos.cli.output import AsJson, answer

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Durable tasks for a Telegram back office. Start with `chronos up`, then `chronos doctor`.",
)


@app.command()
def up(
    rabbitmq: Annotated[
        bool, typer.Option("--rabbitmq", help="a private RabbitMQ instead of the in-process broker")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="what happens, as lines of JSON")] = False,
) -> None:
    """Start everything on embedded parts in this terminal; Ctrl-C stops it."""
    from chronos.cli.output import say_as_it_happens
    from chronos.embedded import up as start

    raise typer.Exit(start(rabbitmq, say_as_it_happens(as_json)))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check every part, then send a task through the whole pipeline."""
    from chronos.cli.doctor import examine

    findings = examine()
    lines = [f"{'ok  ' if finding.ok else 'FAIL'}  {finding.check:<10}  {finding.words}" for finding in findings]
    answer(findings, as_json, lines)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


@app.command()
def config(as_json: AsJson = False) -> None:
    """Every setting: name, value (secrets hidden), default, meaning."""
    from chronos.cli.config import rows, texts

    found = rows()
    answer(found, as_json, texts(found))


app.command()(report.report)
app.add_typer(task.app, name="task")
app.add_typer(queue.app, name="queue")
app.add_typer(dlq.app, name="dlq")
app.add_typer(db.app, name="db")
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(user.app, name="user")


@app.command()
def bot() -> None:
    """The Telegram bot, polling. One per token: a second one says who polls and ends."""
    from chronos.cli.bot import poll

    raise typer.Exit(poll())


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def worker(context: typer.Context) -> None:
    """`dramatiq chronos.actors` under a supervisor that restarts it; Dramatiq's own flags go through (-p, -t, -Q)."""
    from chronos.cli.worker import work

    raise typer.Exit(work(context.args))
