"""`chronos`: the same verbs as everywhere else. Imports come late, so that --help answers at once."""

from __future__ import annotations

import sys


def main() -> None:
    from chronos.errors import BadInput, ChronosError

    try:
        from chronos.cli.app import app

        app()
    except BadInput as error:
        sys.stderr.write(f"chronos: {error}\n")
        raise SystemExit(2) from None
    except ChronosError as error:
        sys.stderr.write(f"chronos: {error}\n")
        raise SystemExit(1) from None
