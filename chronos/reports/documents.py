"""The report as a PDF: a summary, the bars, and the tables that a chat has no room for."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from chronos.language import Language, language_of
from chronos.reports.activity import OUTCOMES, Activity, Counts, Outcome
from chronos.reports.causes import in_words
from chronos.reports.charts import OUTCOME_NAMES, bars_title, wide_chart_of
from chronos.reports.drawing import font_files
from chronos.reports.texts import SAMPLE, dates_of, heading_of, lines_of, queue_name, sample_note

if TYPE_CHECKING:
    from fpdf import FPDF

_INK, _QUIET, _LINE, _SHADE = (22, 32, 44), (91, 103, 117), (220, 226, 232), (243, 246, 249)
_MARGIN = 16.0  #: millimetres

_WORDS = {
    "ru": {
        "zone": "время", "made": "составлен", "page": "стр. {} из {}", "queues": "По очередям", "queue": "очередь",
        "share": "удачно", "half": "половина до", "most": "95 % до", "causes": "Что не удавалось и почему",
        "cause": "причина", "times": "раз", "none": "Ни одной неудачи.", "all": "всего",
        "hour": "час", "day": "день", "week": "неделя с",
        "letters": "Ждут решения неудачные задачи: {} (chronos dlq list).",
    },
    "en": {
        "zone": "time", "made": "made", "page": "page {} of {}", "queues": "By queue", "queue": "queue",
        "share": "went well", "half": "half within", "most": "95% within", "causes": "What failed and why",
        "cause": "cause", "times": "times", "none": "Nothing failed.", "all": "all",
        "hour": "hour", "day": "day", "week": "week of",
        "letters": "Failed tasks that wait for a decision: {} (chronos dlq list).",
    },
}  # fmt: skip


def pdf_of(activity: Activity, language: str) -> bytes:
    """A PDF. The same activity gives the same bytes."""
    speak = language_of(language)
    page = _new_document(activity, speak)
    page.add_page()
    _header(page, activity, speak)
    for line in lines_of(activity, language):
        _bullet(page, line)
    page.ln(3)
    _title(page, bars_title(activity, speak), keep=85)
    page.image(io.BytesIO(wide_chart_of(activity, language)), w=page.epw, alt_text=bars_title(activity, speak))
    page.ln(3)
    if activity.counts.total:
        _queues(page, activity, speak)
    _causes(page, activity, speak)
    if activity.counts.total:
        _steps(page, activity, speak)
    return bytes(page.output())


def _new_document(activity: Activity, speak: Language) -> FPDF:
    from fpdf import FPDF

    words = _WORDS[speak.code]
    title = f"{heading_of(activity, speak.code)}, {dates_of(activity, speak.code)}"

    class Document(FPDF):
        def footer(self) -> None:
            self.set_y(-13)
            self.set_font("DejaVu", size=8)
            self.set_text_color(*_QUIET)
            note = f" · {SAMPLE[speak.code]}" if activity.sample else ""
            self.cell(self.epw / 2, 5, f"Chronos · {title}{note}")
            self.cell(self.epw / 2, 5, words["page"].format(self.page_no(), "{nb}"), align="R")

    page = Document(format="A4")
    page.set_creation_date(activity.made_at)
    page.set_title(title)
    page.set_creator("Chronos")
    page.set_producer("Chronos")
    page.set_lang(speak.code)
    page.set_margins(_MARGIN, 15, _MARGIN)
    page.set_auto_page_break(True, margin=18)
    page.c_margin = 0
    for style, file in font_files().items():
        page.add_font("DejaVu", style, file)
    return page


def _header(page: FPDF, activity: Activity, speak: Language) -> None:
    words = _WORDS[speak.code]
    page.set_font("DejaVu", "B", 22)
    page.set_text_color(*_INK)
    page.cell(0, 11, heading_of(activity, speak.code), new_x="LMARGIN", new_y="NEXT")
    page.set_font("DejaVu", size=10.5)
    page.set_text_color(*_QUIET)
    made = speak.moment(activity.made_at.astimezone(ZoneInfo(activity.zone)))
    said = f"{dates_of(activity, speak.code)} · {words['zone']} {activity.zone} · {words['made']} {made}"
    page.cell(0, 7, said, new_x="LMARGIN", new_y="NEXT")
    if activity.sample:
        page.ln(1)
        page.set_fill_color(255, 233, 191)
        page.set_text_color(122, 75, 0)
        page.set_font("DejaVu", "B", 9.5)
        page.cell(0, 8, f"   {sample_note(speak.code)}", fill=True, new_x="LMARGIN", new_y="NEXT")
        page.set_fill_color(255, 255, 255)
    page.ln(4)


def _bullet(page: FPDF, line: str) -> None:
    page.set_font("DejaVu", size=10.5)
    page.set_text_color(*_INK)
    page.cell(5, 6.4, "•")
    page.multi_cell(0, 6.4, line, align="L", new_x="LMARGIN", new_y="NEXT")


def _title(page: FPDF, words: str, keep: float = 30) -> None:
    """A heading that stays with the `keep` millimetres below it."""
    if page.will_page_break(keep):
        page.add_page()
    page.set_font("DejaVu", "B", 13)
    page.set_text_color(*_INK)
    page.cell(0, 9, words, new_x="LMARGIN", new_y="NEXT")


def _table(page: FPDF, rows: list[list[str]], widths: tuple[int, ...], total: bool = False) -> None:
    """The first row is the heading, repeated on each page; the first column and words are left, numbers right."""
    from fpdf.enums import TableBordersLayout
    from fpdf.fonts import FontFace

    aligned = tuple("LEFT" if index == 0 or width > 40 else "RIGHT" for index, width in enumerate(widths))
    page.set_font("DejaVu", size=9)
    page.set_text_color(*_INK)
    page.set_draw_color(*_LINE)
    heading = FontFace(emphasis="BOLD", color=_QUIET, fill_color=_SHADE, size_pt=7)
    with page.table(
        borders_layout=TableBordersLayout.HORIZONTAL_LINES, col_widths=widths, text_align=aligned, line_height=4.8,
        padding=(0.4, 1.2, 0.4, 1.2), headings_style=heading,
    ) as table:  # fmt: skip
        for index, row in enumerate(rows):
            last = total and index == len(rows) - 1
            table.row(row, style=FontFace(emphasis="BOLD") if last else None)
    page.ln(5)


def _shown(activity: Activity) -> list[Outcome]:
    """What happened at all: a column of nothing tells nothing."""
    return [outcome for outcome in OUTCOMES if outcome == "completed" or getattr(activity.counts, outcome)]


def _counts(counts: Counts, shown: list[Outcome], speak: Language) -> list[str]:
    numbers = [getattr(counts, outcome) for outcome in shown]
    share = "—" if counts.share is None else speak.percent(counts.share)
    return [*(speak.number(number) if number else "—" for number in numbers), share]


def _queues(page: FPDF, activity: Activity, speak: Language) -> None:
    words = _WORDS[speak.code]
    shown = _shown(activity)
    names = [OUTCOME_NAMES[speak.code][outcome] for outcome in shown]
    rows = [[words["queue"], *names, words["share"], words["half"], words["most"]]]
    for queue in activity.queues:
        spans = (queue.durations.median, queue.durations.p95) if queue.durations else ()
        durations = [speak.duration(seconds) for seconds in spans] or ["—", "—"]
        rows.append([queue_name(queue.name, speak.code), *_counts(queue.counts, shown, speak), *durations])
    rows.append([words["all"], *_counts(activity.counts, shown, speak), "", ""])
    _title(page, words["queues"], keep=12 + 6 * len(rows))
    _table(page, rows, (36, *[22] * len(shown), 20, 28, 28), total=True)


def _causes(page: FPDF, activity: Activity, speak: Language) -> None:
    words = _WORDS[speak.code]
    _title(page, words["causes"], keep=12 + 6 * (1 + len(activity.causes)))
    if activity.causes:
        rows = [[words["queue"], words["cause"], words["times"]]]
        rows += [
            [queue_name(cause.queue, speak.code), in_words(cause, speak.code), speak.number(cause.number)]
            for cause in activity.causes
        ]
        _table(page, rows, (34, 130, 16))
    else:
        _bullet(page, words["none"])
    if activity.waiting_letters:
        _bullet(page, words["letters"].format(speak.number(activity.waiting_letters)))
        page.ln(3)


def _steps(page: FPDF, activity: Activity, speak: Language) -> None:
    words = _WORDS[speak.code]
    shown = _shown(activity)
    rows = [[words[activity.unit], *(OUTCOME_NAMES[speak.code][outcome] for outcome in shown), words["share"]]]
    for step in activity.steps:
        day = step.start.date()
        name = (
            speak.clock(step.start) if activity.unit == "hour" else f"{speak.weekday(day)}, {speak.day_and_month(day)}"
        )
        rows.append([name, *_counts(step.counts, shown, speak)])
    _title(page, bars_title(activity, speak))
    _table(page, rows, (36, *[24] * len(shown), 22))
