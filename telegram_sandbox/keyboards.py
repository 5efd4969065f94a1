"""reply_markup: what Telegram takes, and the words with which it refuses the rest."""

from __future__ import annotations

from typing import Any

from telegram_sandbox.errors import Json, bad_request
from telegram_sandbox.parameters import Parameters

#: Telegram counts them in bytes: Cyrillic letters take two.
LONGEST_DATA = 64
MOST_BUTTONS = 100
ACTIONS = (
    "url callback_data web_app login_url switch_inline_query switch_inline_query_current_chat"
    " switch_inline_query_chosen_chat copy_text callback_game pay"
)


def markup_of(parameters: Parameters) -> tuple[Json | None, Json | None]:
    """(the inline keyboard, which belongs to the message; any other markup, which belongs to the person's chat)."""
    given = parameters.json("reply_markup", "can't parse reply keyboard markup JSON object")
    if given is None or given == {}:
        return None, None
    if not isinstance(given, dict):
        raise bad_request("object expected as reply markup")
    if "inline_keyboard" in given:
        rows = [
            [_inline_button(button) for button in row]
            for row in _rows(given["inline_keyboard"], "inline keyboard")
            if row
        ]
        if sum(len(row) for row in rows) > MOST_BUTTONS:
            raise bad_request("reply markup is too long")
        return ({"inline_keyboard": rows} if rows else None), None
    if "keyboard" in given:
        rows = [[_button(button) for button in row] for row in _rows(given["keyboard"], "keyboard") if row]
        kept = ("is_persistent", "resize_keyboard", "one_time_keyboard", "input_field_placeholder", "selective")
        return None, {"keyboard": rows, **{key: given[key] for key in kept if key in given}}
    if given.get("remove_keyboard"):
        return None, {"remove_keyboard": True}
    if given.get("force_reply"):
        return None, {"force_reply": True, "input_field_placeholder": given.get("input_field_placeholder", "")}
    return None, None


def _rows(value: Any, name: str) -> list[list[Any]]:
    if not isinstance(value, list):
        raise bad_request(f'field "{name.replace(" ", "_")}" of the reply markup must be of type Array')
    for row in value:
        if not isinstance(row, list):
            raise bad_request(f"can't parse {name} button row: expected an Array of buttons")
    return value


def _inline_button(button: Any) -> Json:
    if not isinstance(button, dict):
        raise bad_request("can't parse inline keyboard button: expected an Object")
    text = button.get("text")
    if not isinstance(text, str) or not text.strip():
        raise bad_request('can\'t parse inline keyboard button: Field "text" must be of type String')
    action = next((name for name in ACTIONS.split() if button.get(name) is not None), None)
    if action is None:
        raise bad_request("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
    value = button[action]
    if action == "callback_data" and not (isinstance(value, str) and 1 <= len(value.encode()) <= LONGEST_DATA):
        raise bad_request("BUTTON_DATA_INVALID")
    if action == "url" and not _is_link(value):
        raise bad_request(f"inline keyboard button URL '{value}' is invalid: Wrong HTTP URL")
    kept = {name: button[name] for name in ("style", "icon_custom_emoji_id") if name in button}
    return {"text": text, action: value, **kept}


def _is_link(value: Any) -> bool:
    if not isinstance(value, str) or " " in value:
        return False
    scheme, there, rest = value.partition("://")
    if there:
        return scheme == "tg" or (scheme in ("http", "https") and ("." in rest or rest.startswith("localhost")))
    return "." in value


def _button(button: Any) -> Json:
    if isinstance(button, str):
        button = {"text": button}
    if not isinstance(button, dict) or not isinstance(button.get("text"), str) or not button["text"]:
        raise bad_request('can\'t parse keyboard button: Field "text" must be of type String')
    return dict(button)
