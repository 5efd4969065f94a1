"""chronos user: list, grant, revoke, invite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chronos.cli.output import AsJson, answer, table

if TYPE_CHECKING:
    from chronos.people import Person

app = typer.Typer(no_args_is_help=True, help="Who may use the bot.")

Id = Annotated[str, typer.Argument(metavar="ID", help="numeric Telegram id; the bot's /start shows it")]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """Everybody who has a role, admins first."""
    from chronos.people import with_roles
    from chronos.runtime import runtime

    found = with_roles(runtime())
    answer(found, as_json, table([_columns(person) for person in found], right=("id",)) or ["nobody has a role"])


def _columns(person: Person) -> dict[str, str]:
    return {
        "id": str(person.id),
        "role": person.role or "",
        "name": person.first_name or "",
        "username": f"@{person.username}" if person.username else "",
        "language": person.speaks if person.language or person.language_code else "",
        "zone": person.time_zone or "",
    }


@app.command("grant")
def grant(
    id_: Id,
    role: Annotated[str, typer.Argument(help="user, editor or admin")] = "user",
    as_json: AsJson = False,
) -> None:
    """Give a person a role, instead of the one they have."""
    from chronos.people import grant as give
    from chronos.people import id_of, role_of
    from chronos.runtime import runtime

    change = give(runtime(), id_of(id_), role_of(role))
    answer(
        {"id": change.person.id, "role": change.person.role, "before": change.before},
        as_json,
        [f"{change.person.id} is {change.person.role} now"],
    )


@app.command("revoke")
def revoke(id_: Id, as_json: AsJson = False) -> None:
    """Take a person's role: the bot does not work for them any more."""
    from chronos.people import id_of
    from chronos.people import revoke as take
    from chronos.runtime import runtime

    change = take(runtime(), id_of(id_))
    answer(
        {"id": change.person.id, "role": None, "before": change.before},
        as_json,
        [f"{change.person.id} has no role any more"],
    )


@app.command("invite")
def invite(as_json: AsJson = False) -> None:
    """A code that makes whoever opens it first an admin, once: https://t.me/<bot>?start=<code>."""
    from sqlalchemy import text

    from chronos.people import invite_admin
    from chronos.runtime import runtime

    code = invite_admin(runtime())
    with runtime().database.statement() as connection:
        name = connection.execute(
            text("select username from bots where id = :id"), {"id": runtime().settings.bot_id}
        ).scalar()
    link = f"https://t.me/{name}?start={code}" if name else None
    lines = [link or f"/start {code}", "whoever opens this first is an admin; it works once"]
    answer({"code": code, "link": link}, as_json, lines)
