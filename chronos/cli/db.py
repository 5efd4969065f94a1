"""chronos db: upgrade, status."""

from __future__ import annotations

import typer

from chronos.cli.output import AsJson, answer

app = typer.Typer(no_args_is_help=True, help="The database's schema.")


@app.command("upgrade")
def upgrade(as_json: AsJson = False) -> None:
    """Bring the database to the schema of this code."""
    from chronos.engine import schema
    from chronos.runtime import runtime

    database = runtime().database
    before = database.persist(lambda: schema.current(database), deadline=30)
    database.persist(lambda: schema.upgrade(database), deadline=30)
    now = schema.expected()
    words = f"the schema is at {now}" + (" already" if before == now else "")
    answer({"schema": now, "before": before}, as_json, [words])


@app.command("status")
def status(as_json: AsJson = False) -> None:
    """Which schema the database has, and which one this code needs; exit code 1 when they differ."""
    from chronos.engine import schema
    from chronos.runtime import runtime

    found, wanted = schema.current(runtime().database), schema.expected()
    words = (
        f"the schema is at {found}, as this code needs it"
        if found == wanted
        else f"the schema is at {found or 'nothing'}, this code needs {wanted}: run `chronos db upgrade`"
    )
    answer({"found": found, "expected": wanted}, as_json, [words])
    if found != wanted:
        raise typer.Exit(1)
