"""The chart and the PDF: complete, the same each time, drawn by several threads at once, and paid for late."""

from __future__ import annotations

import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pypdf
import pytest
from PIL import Image

from chronos.reports.activity import Activity, Cause, Counts, Durations, Queue, Step
from chronos.reports.charts import HEIGHT, WIDTH, chart_of
from chronos.reports.documents import pdf_of
from tests.processes import ROOT
from tests.reports.conftest import NOTHING, figures

HOURS = [Step(start=datetime(2026, 11, 18, hour, tzinfo=UTC), counts=Counts(completed=hour)) for hour in range(24)]
DAYS = [
    Step(start=datetime(2026, 9, 18, tzinfo=UTC) + timedelta(days=day), counts=Counts(completed=10**7, failed=10**5))
    for day in range(62)
]
ODD = [
    NOTHING,
    figures(unit="hour", steps=HOURS, first=date(2026, 11, 18), last=date(2026, 11, 18), period="today", sample=True),
    figures(steps=DAYS, first=date(2026, 9, 18), counts=Counts(completed=62 * 10**7, failed=62 * 10**5), period="62d"),
    figures(unit="week", steps=DAYS[::7], first=date(2026, 5, 3), period="200d"),
    figures(counts=Counts(cancelled=1), queues=[Queue(name="post", counts=Counts(cancelled=1), durations=None)]),
    figures(
        queues=[
            Queue(name=f"queue {number}", counts=Counts(completed=1), durations=Durations(median=0.001, p95=90_000.0))
            for number in range(9)
        ],
        causes=[
            Cause(queue="post", task_name="x", error_class=None, words="слово $x_1^2$ \\frac{ % 中文 🎉 " * 9, number=9)
        ] * 8,
    ),
]  # fmt: skip


def pages(pdf: bytes) -> list[str]:
    return [page.extract_text().replace("\u00a0", " ") for page in pypdf.PdfReader(io.BytesIO(pdf)).pages]


@pytest.mark.parametrize("language", ["ru", "en"])
@pytest.mark.parametrize("activity", ODD)
def test_every_period_can_be_drawn(activity: Activity, language: str) -> None:
    with Image.open(io.BytesIO(chart_of(activity, language))) as image:
        image.load()
        assert image.format == "PNG" and image.size == (WIDTH, HEIGHT)
        assert len(image.convert("L").getcolors() or []) > 10  # something is on it
    assert pages(pdf_of(activity, language))


def test_a_chart_shows_its_figures() -> None:
    """By what changes when they change."""
    chart = chart_of(figures(), "ru")
    for other in (
        figures(counts=Counts(completed=722, failed=21)),
        figures(steps=figures().steps[::-1]),
        figures(sample=True),
        figures(zone="Europe/Berlin"),
        figures(queues=figures().queues[:1]),
    ):
        assert chart_of(other, "ru") != chart
    assert chart_of(figures(), "en") != chart


def test_a_pdf_has_summary_tables_causes_and_page_numbers() -> None:
    said = pages(pdf_of(figures(sample=True, steps=DAYS), "ru"))
    first = said[0]
    for words in (
        "Отчёт за 7 дней", "12–18 нояб. 2026", "Europe/Moscow", "пример данных", "Выполнена 721 задача из 742",
        "Удачно 97,2 %", "По очередям", "посты", "400 мс", "1 мин 35 с", f"стр. 1 из {len(said)}",
    ):  # fmt: skip
        assert words in first, (words, first)
    everything = "\n".join(said)
    for words in ("человек заблокировал бота", "Ждут решения неудачные задачи: 3", "пт, 18 сент", "ср, 18 нояб"):
        assert words in everything, words
    assert len(said) >= 3 and f"стр. {len(said)} из {len(said)}" in said[-1]
    assert said[-1].startswith("день"), "a table that goes on repeats its heading"
    english = "\n".join(pages(pdf_of(figures(), "en")))
    assert "By queue" in english and "page 1 of" in english and "sample" not in english


def test_threads_that_draw_at_once_draw_what_one_alone_draws() -> None:
    wanted = [(activity, language) for activity in (ODD[0], ODD[1], figures()) for language in ("ru", "en")] * 3
    alone = [(chart_of(*each), pdf_of(*each)) for each in wanted]
    with ThreadPoolExecutor(8) as pool:
        charts = list(pool.map(lambda each: chart_of(*each), wanted))
        pdfs = list(pool.map(lambda each: pdf_of(*each), wanted))
    assert list(zip(charts, pdfs, strict=True)) == alone


def test_fifty_charts_leave_no_memory_behind(its_own_folder: Path) -> None:
    """In a process of its own, after its caches are full."""
    code = (
        "import gc, psutil\n"
        "from tests.reports.conftest import figures\n"
        "from chronos.reports.charts import chart_of\n"
        "def draw(times):\n"
        "    for _ in range(times): chart_of(figures(), 'ru')\n"
        "    gc.collect()\n"
        "    return psutil.Process().memory_info().rss\n"
        "before = draw(45); print(draw(50) - before)"
    )
    environment = {"PYTHONPATH": str(ROOT), "MPLCONFIGDIR": str(its_own_folder)}
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert int(answer.stdout) < 8_000_000


def test_a_process_that_makes_no_report_imports_nothing_for_it(database_url: str) -> None:
    code = (
        "import sys, chronos.actors, chronos.reports.gathering, chronos.reports.sample\n"
        "print([m for m in ('matplotlib', 'numpy', 'fpdf', 'PIL', 'aiogram') if m in sys.modules])"
    )
    environment = {"CHRONOS_DATABASE_URL": database_url, "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout == "[]\n"


def test_matplotlib_writes_into_the_data_folder_and_nowhere_else(tmp_path: Path) -> None:
    """Also when there is no home; and it warns of nothing. The second chart finds the list of fonts."""
    home, data = tmp_path / "home", tmp_path / "data"
    home.mkdir(mode=0o500)
    code = (
        "import logging, sys; logging.basicConfig(level='WARNING')\n"
        "from tests.reports.conftest import figures\n"
        "from chronos.reports.charts import chart_of\n"
        "from chronos.reports.documents import pdf_of\n"
        "chart_of(figures(), 'ru'); pdf_of(figures(), 'ru')"
    )
    environment = {"HOME": str(home), "CHRONOS_DATA_DIR": str(data), "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert [path.name for path in (data / "matplotlib").glob("fontlist*")] != []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "home"] and list(home.iterdir()) == []
