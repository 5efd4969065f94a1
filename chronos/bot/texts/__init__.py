"""What the bot says: both languages have the same texts with the same fields, and every field is escaped.

`say(language, key, **fields)` makes HTML. A `str` among the fields is somebody's words and is escaped; only what is
`Html` already, made in here, goes in as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from string import Formatter

from chronos.bot.texts import en, ru
from chronos.errors import BadInput, ChronosError, Unavailable
from chronos.language import language_of

Text = str | Mapping[str, str]

TEXTS: dict[str, Mapping[str, Text]] = {"ru": ru.TEXTS, "en": en.TEXTS}


class Html(str):
    """Safe to send with parse_mode HTML."""

    __slots__ = ()


def say(language: str, key: str, /, **fields: str | float) -> Html:
    """A text with plural forms takes the one for its field `count`."""
    text = TEXTS[language][key]
    if not isinstance(text, str):
        text = language_of(language).plural(int(fields["count"]), **text)
    return Html(text.format_map({name: _shown(language, value) for name, value in fields.items()}))


def _shown(language: str, value: str | float) -> str:
    if isinstance(value, Html):
        return value
    return escape(value, quote=False) if isinstance(value, str) else language_of(language).number(value)


def plain(language: str, key: str, /, **fields: str | float) -> str:
    """For buttons and answers to presses, which know no formatting: a text without tags, its fields as they are."""
    text = TEXTS[language][key]
    if not isinstance(text, str):
        text = language_of(language).plural(int(fields["count"]), **text)
    speak = language_of(language)
    return text.format_map(
        {name: value if isinstance(value, str) else speak.number(value) for name, value in fields.items()}
    )


def lines(*said: str) -> Html:
    """Each of them Html, on a line of its own."""
    return Html("\n".join(line for line in said if line is not None))


def words_of(error: ChronosError, language: str) -> Html:
    """What cannot be done as it was asked, in the reader's language."""
    if isinstance(error, BadInput) and f"error.{error.reason}" in TEXTS[language]:
        return say(language, f"error.{error.reason}", **error.fields)
    return say(language, "error.away" if isinstance(error, Unavailable) else "error.not_so")


def fields_of(text: Text) -> set[str]:
    forms = [text] if isinstance(text, str) else list(text.values())
    return {name for form in forms for _, name, _, _ in Formatter().parse(form) if name}
