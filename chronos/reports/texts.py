"""The report in words: a title and five lines that a person would want to know."""

from __future__ import annotations

from chronos.language import Language, language_of
from chronos.reports.activity import Activity, Queue
from chronos.reports.causes import in_words

#: What people call the queues; another name is shown as it is.
QUEUES = {
    "ru": {
        "report": "отчёты", "post": "посты", "schedule": "напоминания", "broadcast": "рассылки",
        "delivery": "доставка файлов", "system": "служебные",
    },
    "en": {
        "report": "reports", "post": "posts", "schedule": "reminders", "broadcast": "broadcasts",
        "delivery": "file deliveries", "system": "system",
    },
}  # fmt: skip
SAMPLE = {"ru": "пример данных", "en": "sample data"}


def text_of(activity: Activity, language: str) -> str:
    """Plain text for a chat or a terminal; as the caption of a photo it has room to spare."""
    said = ["📊 " + title_of(activity, language), *(f"• {line}" for line in lines_of(activity, language))]
    if activity.sample:
        said.append("🧪 " + sample_note(language))
    return "\n".join(said)


def sample_note(language: str) -> str:
    if language == "ru":
        return "Здесь пример данных: эти задачи придуманы, чтобы было на что посмотреть."
    return "This includes sample data: tasks made up to have something to look at."


def queue_name(queue: str, language: str) -> str:
    return QUEUES[language].get(queue, queue)


def title_of(activity: Activity, language: str) -> str:
    return f"{heading_of(activity, language)}, {dates_of(activity, language)}"


def heading_of(activity: Activity, language: str) -> str:
    speak = language_of(language)
    if activity.period == "today":
        return "Отчёт за сегодня" if language == "ru" else "Report for today"
    if activity.period.endswith("d") or activity.days > 1:
        days = speak.days_of(activity.days)
        return f"Отчёт за {days}" if language == "ru" else f"Report for {days}"
    return "Отчёт за день" if language == "ru" else "Report for a day"


def dates_of(activity: Activity, language: str) -> str:
    speak = language_of(language)
    return speak.day(activity.first) if activity.days == 1 else speak.days(activity.first, activity.last)


def lines_of(activity: Activity, language: str) -> list[str]:
    speak = language_of(language)
    if not activity.counts.total and not activity.sends.total:
        return ["Ни одна задача не завершилась." if language == "ru" else "No task has ended."]
    lines = [_done(activity, speak), _share(activity, speak), _failures(activity, speak), _slowest(activity, speak),
             _sends(activity, speak)]  # fmt: skip
    return [line for line in lines if line]


def _done(activity: Activity, speak: Language) -> str:
    done, total = activity.counts.completed, activity.counts.total
    if speak.code == "ru":
        verb = speak.plural(done, one="Выполнена", few="Выполнено", many="Выполнено")
        noun = speak.plural(done, one="задача", few="задачи", many="задач")
        return f"{verb} {speak.number(done)} {noun}" + (f" из {speak.number(total)}" if total > done else "")
    noun = speak.plural(done if total == done else total, one="task", other="tasks")
    return f"{speak.number(done)} {noun} done" if total == done else (
        f"{speak.number(done)} of {speak.number(total)} {noun} done"
    )  # fmt: skip


def _share(activity: Activity, speak: Language) -> str:
    share = activity.counts.share
    if share is None:
        return ""
    said = f"{'Удачно' if speak.code == 'ru' else 'Went well:'} {speak.percent(share)}"
    change = change_of(activity, speak.code)
    if not change:
        return said
    than = (", чем" if change != "так же" else ", как") if speak.code == "ru" else (
        " than" if change != "the same" else " as"
    )  # fmt: skip
    return f"{said}, {change}{than} {_versus(activity, speak)}"


def change_of(activity: Activity, language: str) -> str:
    """Better or worse; empty when nothing had to work in one of the two periods."""
    speak, share, before = language_of(language), activity.counts.share, activity.before.share
    if share is None or before is None:
        return ""
    points = round((share - before) * 100, 1)
    shown = speak.number(abs(points))
    if language == "ru":
        return f"на {shown} п. п. {'лучше' if points > 0 else 'хуже'}" if points else "так же"
    noun = "point" if abs(points) == 1 else "points"
    return f"{shown} {noun} {'better' if points > 0 else 'worse'}" if points else "the same"


def _versus(activity: Activity, speak: Language) -> str:
    days = speak.days_of(activity.days)
    if speak.code == "ru":
        return "вчера" if activity.period == "today" else "днём раньше" if activity.days == 1 else f"за {days} до этого"
    if activity.days == 1:
        return "yesterday" if activity.period == "today" else "the day before"
    return f"in the {days} before"


def _failures(activity: Activity, speak: Language) -> str:
    if not activity.causes and (expired := activity.counts.expired):
        return f"Опоздало: {speak.number(expired)}" if speak.code == "ru" else f"Expired: {speak.number(expired)}"
    if not activity.causes:
        return "Ни одной неудачи" if speak.code == "ru" else "Nothing failed"
    worst = activity.causes[0]
    why, name = in_words(worst, speak.code), queue_name(worst.queue, speak.code)
    if speak.code == "ru":
        times = speak.plural(worst.number, one="раз", few="раза", many="раз")
        return f"Чаще всего не удавалось: {name}, {speak.number(worst.number)} {times}: {why}"
    times = speak.plural(worst.number, one="time", other="times")
    return f"Failed most: {name}, {speak.number(worst.number)} {times}: {why}"


def _slowest(activity: Activity, speak: Language) -> str:
    slowest: Queue | None = activity.slowest
    if slowest is None or slowest.durations is None:
        return ""
    half, most = speak.duration(slowest.durations.median), speak.duration(slowest.durations.p95)
    name, share = queue_name(slowest.name, speak.code), speak.percent(0.95)
    if speak.code == "ru":
        return f"Дольше всего: {name}, половина быстрее {half}, {share} быстрее {most}"
    return f"Slowest: {name}, half within {half}, {share} within {most}"


def _sends(activity: Activity, speak: Language) -> str:
    sends = activity.sends
    numbers = [speak.number(count) for count in (sends.sent, sends.not_sent, sends.unknown)]
    if not sends.total:
        return "Сообщений не отправлялось" if speak.code == "ru" else "No messages were sent"
    if speak.code == "ru":
        said = "Сообщения: доставлено {}, не доставлено {}, неизвестно {}".format(*numbers)
        return said + (f", в пути {speak.number(sends.under_way)}" if sends.under_way else "")
    said = "Messages: {} delivered, {} not delivered, {} unknown".format(*numbers)
    return said + (f", {speak.number(sends.under_way)} under way" if sends.under_way else "")
