"""Parse modes: Telegram's entities, counted in UTF-16 units, and Telegram's complaints, counted in bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_sandbox.errors import ApiError
from telegram_sandbox.markup import formatted, utf16_length


def parsed(text: str, mode: str) -> tuple[str, list[tuple[Any, ...]]]:
    shown, entities = formatted(text, mode, None)
    more = ("url", "language", "custom_emoji_id")
    return shown, [(e["type"], e["offset"], e["length"], *(e[k] for k in more if k in e)) for e in entities]


@pytest.mark.parametrize(
    ("mode", "text", "shown", "entities"),
    [
        ("HTML", "<b>a<i>😀</i></b>", "a😀", [("bold", 0, 3), ("italic", 1, 2)]),
        ("HTML", "a &lt;b&gt; &amp; &#1071;&quot; &copy; &", 'a <b> & Я" &copy; &', []),
        ("HTML", '<a href="https://e.org/?a=1&amp;b=2">x</a>', "x", [("text_link", 0, 1, "https://e.org/?a=1&b=2")]),
        ("HTML", '<pre><code class="language-py">f()</code></pre>', "f()", [("pre", 0, 3, "py")]),
        (
            "HTML",
            "<tg-spoiler>s</tg-spoiler><span class='tg-spoiler'>t</span>",
            "st",
            [("spoiler", 0, 1), ("spoiler", 1, 1)],
        ),
        ("HTML", "<blockquote expandable>q</blockquote>", "q", [("expandable_blockquote", 0, 1)]),
        ("html", "  <b> a </b>  ", "a", [("bold", 0, 1)]),
        ("HTML", "<b></b>x", "x", []),
        (
            "MarkdownV2",
            "*b _i_* __u__ ~s~ ||p|| `c\\``",
            "b i u s p c`",
            [
                ("bold", 0, 3),
                ("italic", 2, 1),
                ("underline", 4, 1),
                ("strikethrough", 6, 1),
                ("spoiler", 8, 1),
                ("code", 10, 2),
            ],
        ),
        ("MarkdownV2", "[x\\.y](https://e\\.org/a)", "x.y", [("text_link", 0, 3, "https://e.org/a")]),
        ("MarkdownV2", "```py\nf()\n```", "f()", [("pre", 0, 3, "py")]),
        ("MarkdownV2", ">a\n>b\nc", "a\nb\nc", [("blockquote", 0, 4)]),
        ("MarkdownV2", ">a\n>b||", "a\nb", [("expandable_blockquote", 0, 3)]),
        ("MarkdownV2", "🏟 🏟_🏟 *🏟*_", "🏟 🏟🏟 🏟", [("italic", 5, 5), ("bold", 8, 2)]),
        (
            "Markdown",
            "*b* _i_ `c` [x](e.org) \\_",
            "b i c x _",
            [("bold", 0, 1), ("italic", 2, 1), ("code", 4, 1), ("text_link", 6, 1, "http://e.org/")],
        ),
        (
            "",
            "/a@b_bot #x @name a@e.org https://e.org/x). e.org",
            "/a@b_bot #x @name a@e.org https://e.org/x). e.org",
            [
                ("bot_command", 0, 8),
                ("hashtag", 9, 2),
                ("mention", 12, 5),
                ("email", 18, 7),
                ("url", 26, 15),
                ("url", 44, 5),
            ],
        ),
    ],
)
def test_a_text_becomes_what_telegram_makes_of_it(mode: str, text: str, shown: str, entities: list[Any]) -> None:
    assert parsed(text, mode) == (shown, entities)


@pytest.mark.parametrize(
    ("mode", "text", "complaint"),
    [
        ("HTML", "я<b>x", "Can't find end tag corresponding to start tag b"),
        ("HTML", "я<x>", 'Unsupported start tag "x" at byte offset 2'),
        ("HTML", "я<b>a</i>", 'Unmatched end tag at byte offset 6, expected "</b>", found "</i>"'),
        ("HTML", "</b>", "Unexpected end tag at byte offset 0"),
        ("HTML", "a < b", 'Unsupported start tag "" at byte offset 2'),
        ("HTML", "<b", "Unclosed start tag at byte offset 0"),
        ("HTML", "<span>x</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ("MarkdownV2", "a.b", "Character '.' is reserved and must be escaped with the preceding '\\'"),
        ("MarkdownV2", "🏟 🏟_abacaba", "Can't find end of Italic entity at byte offset 9"),
        ("MarkdownV2", "🏟 🏟_abac * asd ", "Can't find end of Bold entity at byte offset 15"),
        ("MarkdownV2", "🏟 🏟```", "Can't find end of Pre entity at byte offset 9"),
        ("MarkdownV2", "🏟 🏟```a ", "Can't find end of PreCode entity at byte offset 9"),
        ("MarkdownV2", "[telegram\\.org](asd", "Can't find end of a URL at byte offset 16"),
        ("MarkdownV2", "🏟 🏟||test\\|", "Can't find end of Spoiler entity at byte offset 9"),
        ("MarkdownV2", ">*b\n>ld \n>bo\nld*\nasd\ndef", "Can't find end of Bold entity at byte offset 1"),
        ("MarkdownV2", "🏟 🏟>", "Character '>' is reserved and must be escaped with the preceding '\\'"),
        ("Markdown", "я*b", "Can't find end of the entity starting at byte offset 2"),
    ],
)
def test_a_mistake_is_named_in_telegrams_words(mode: str, text: str, complaint: str) -> None:
    with pytest.raises(ApiError) as error:
        parsed(text, mode)
    assert error.value.description == f"Bad Request: can't parse entities: {complaint}"


@given(
    st.text(alphabet="ab я😀_*[]()~`>#+-=|{}.!\\<>&/\n", max_size=30),
    st.sampled_from(["HTML", "Markdown", "MarkdownV2", ""]),
)
def test_no_text_breaks_the_parser_and_every_entity_lies_in_the_text(text: str, mode: str) -> None:
    try:
        shown, entities = formatted(text, mode, None)
    except ApiError as error:
        assert error.code == 400
        return
    for entity in entities:
        assert entity["offset"] >= 0
        assert entity["length"] > 0
        assert entity["offset"] + entity["length"] <= utf16_length(shown)


@given(st.text(alphabet="ab <>&\"'\nя😀", max_size=30))
def test_escaped_html_shows_the_very_text(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert formatted(escaped, "HTML", None)[0] == text.strip()
