"""A card: the ONE message about a task, written once and edited until the task's end.

`words_of` says what a card shows, `open_card` makes a message the card of a task, `show` edits it to what its task is
now, `press` does what a button says. Importing this package does not import aiogram.
"""

from chronos.cards.facts import CardFacts, facts_of
from chronos.cards.pressing import Place, press
from chronos.cards.showing import Card, card_of, open_card, send_anew, show, show_in_passing
from chronos.cards.words import Words, words_of
from chronos.models.buttons import Button, Press

__all__ = [
    "Button",
    "Card",
    "CardFacts",
    "Place",
    "Press",
    "Words",
    "card_of",
    "facts_of",
    "open_card",
    "press",
    "send_anew",
    "show",
    "show_in_passing",
    "words_of",
]
