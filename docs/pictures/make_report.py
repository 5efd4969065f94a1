"""docs/pictures/report-*.png: the charts of docs/reports.md, from sample data in a database of its own.

python -m docs.pictures.make_report
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from chronos.config import Settings
from chronos.db import Database
from chronos.engine import schema
from chronos.reports.charts import chart_of
from chronos.reports.gathering import gather
from chronos.reports.sample import put_sample
from private_services import PrivatePostgres

FOLDER = Path(__file__).parent


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="chronos-pictures-") as folder,
        PrivatePostgres(Path(folder) / "postgres") as server,
    ):
        database = Database(server.url, Settings())
        schema.upgrade(database)
        with database.transaction() as connection:
            put_sample(connection)
            activity = gather(connection, "7d", "Europe/Moscow")
        database.close()
        for language in ("ru", "en"):
            (FOLDER / f"report-{language}.png").write_bytes(chart_of(activity, language))


if __name__ == "__main__":
    main()
