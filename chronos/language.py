"""Numbers, plurals, dates and durations as a Russian or an English reader writes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from babel import Locale
from babel.dates import format_date, format_datetime, format_interval, format_skeleton, format_time
from babel.numbers import format_decimal, format_percent
from babel.units import format_unit

from chronos.errors import BadInput

LANGUAGES = ("ru", "en")
#: Of Telegram's language codes, those whose speakers read Russian with more ease than English.
READ_RUSSIAN = frozenset({"ru", "be", "uk", "kk", "ky", "uz", "tg", "hy"})


@dataclass(frozen=True)
class Language:
    code: str
    locale: Locale

    def plural(self, number: int, **forms: str) -> str:
        """The form for this number by the language's own rules: one, few, many, other."""
        return forms.get(self.locale.plural_form(number)) or forms["many" if "many" in forms else "other"]

    def days_of(self, number: int) -> str:
        words = {"ru": {"one": "день", "few": "дня", "many": "дней"}, "en": {"one": "day", "other": "days"}}
        return f"{self.number(number)} {self.plural(number, **words[self.code])}"

    def number(self, value: float) -> str:
        return _plain(format_decimal(value, locale=self.locale))

    def percent(self, share: float) -> str:
        """With one decimal; 100 % only when it is all of them, 0 % only when it is none."""
        shown = share if share in (0.0, 1.0) else min(max(share, 0.001), 0.999)
        space = "\u00a0" if self.code == "ru" else ""
        return _plain(format_percent(shown, f"#,##0.#{space}%", locale=self.locale))

    def duration(self, seconds: float) -> str:
        """180 ms, 2.3 sec, 21 sec, 1 min 28 sec, 3 hr 20 min, 2 days 4 hr."""
        if seconds < 0.9995:
            return self._unit(max(1, round(seconds * 1000)), "millisecond")
        if seconds < 9.95:
            return self._unit(round(seconds, 1), "second")
        if round(seconds) < 60:
            return self._unit(round(seconds), "second")
        for size, name, part_size, part_name, most in (
            (60, "minute", 1, "second", 10 * 60),
            (60, "minute", 60, "minute", 3600),
            (3600, "hour", 60, "minute", 86400),
            (86400, "day", 3600, "hour", 0),
        ):
            whole = round(seconds / part_size) * part_size
            if whole < most or not most:
                count, rest = divmod(whole, size)
                shown = self._unit(count, name)
                return f"{shown} {self._unit(rest // part_size, part_name)}" if rest else shown
        raise AssertionError("unreachable")

    def _unit(self, count: float, name: str) -> str:
        return _plain(format_unit(count, f"duration-{name}", "short", locale=self.locale)).replace(" ", "\u00a0")

    def day(self, day: date) -> str:
        return _plain(format_date(day, "long", locale=self.locale))

    def days(self, first: date, last: date) -> str:
        return _plain(str(format_interval(first, last, "yMMMd", locale=self.locale)))

    def day_and_month(self, day: date) -> str:
        return _plain(format_skeleton("MMMd", day, locale=self.locale)).rstrip(".")

    def weekday(self, day: date) -> str:
        return _plain(format_date(day, "EEE", locale=self.locale))

    def hour(self, moment: datetime) -> str:
        pattern = "HH" if self.code == "ru" else "h a"
        return _plain(format_time(moment, pattern, moment.tzinfo, locale=self.locale))

    def clock(self, moment: datetime) -> str:
        return _plain(format_time(moment, "short", moment.tzinfo, locale=self.locale))

    def second(self, moment: datetime) -> str:
        return _plain(format_time(moment, "medium", moment.tzinfo, locale=self.locale))

    def moment(self, moment: datetime) -> str:
        return _plain(format_datetime(moment, "medium", moment.tzinfo, locale=self.locale))


def _plain(text: str) -> str:
    """Spaces of other widths are no glyphs of every font."""
    return text.replace("\u202f", "\u00a0").replace("\u2009", "\u00a0")


@lru_cache
def language_of(code: str) -> Language:
    if code not in LANGUAGES:
        raise BadInput(f"Chronos speaks {' or '.join(LANGUAGES)}, not {code!r}")
    return Language(code, Locale.parse(code))


def language_for(chosen: str | None, telegram_says: str | None) -> str:
    """What a person chose in /settings, else what their Telegram speaks as far as we do, else English."""
    if chosen in LANGUAGES:
        return chosen
    return "ru" if (telegram_says or "").lower().split("-")[0] in READ_RUSSIAN else "en"
