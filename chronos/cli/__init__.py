"""`chronos`: the same verbs as everywhere else. Imports come late, so that --help answers at once.

Exit codes: 0 done · 1 it could not be done, or something is not well · 2 it was asked wrongly. Every error is one line.
"""

from __future__ import annotations

import sys


def main() -> None:
    from chronos.errors import BadInput, ChronosError

    try:
        raise SystemExit(_run())
    except BadInput as error:
        _say(str(error))
        raise SystemExit(2) from None
    except ChronosError as error:
        _say(str(error))
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _run() -> int:
    from typer.exceptions import TyperException

    from chronos.cli.app import app

    try:
        return int(app(prog_name="chronos", standalone_mode=False) or 0)
    except TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
        else:
            context = getattr(error, "ctx", None)
            about = f"; see `{context.command_path} --help`" if context else ""
            _say(f"{error.format_message().rstrip('.')}{about}")
        return error.exit_code
    except Exception as error:
        line = _of_the_database(error)
        if line is None:
            raise
        _say(line)
        return 1
    finally:
        _close()


def _close() -> None:
    """What a submit left to be published goes out before we leave."""
    if "chronos.runtime" in sys.modules:
        from chronos.runtime import runtime

        if runtime.cache_info().currsize:
            runtime().close()


def _of_the_database(error: Exception) -> str | None:
    """One line for a database that is away, refuses us, or has another schema; None: the error is something else."""
    if "sqlalchemy.exc" not in sys.modules:
        return None
    from sqlalchemy.exc import DBAPIError

    from chronos.db import is_passing
    from chronos.errors import one_line

    if not isinstance(error, DBAPIError):
        return None
    state = getattr(error.orig, "sqlstate", None) or ""
    if state in ("42P01", "42703"):  # no such table, no such column
        return "the database has not the schema of this code: run `chronos db upgrade`"
    if is_passing(error) or state[:2] in ("28", "3D", "42"):  # who are you, which database, you may not
        return f"PostgreSQL: {one_line(error.orig or error)}"
    return None


def _say(words: str) -> None:
    sys.stderr.write(f"chronos: {' '.join(words.split())}\n")
