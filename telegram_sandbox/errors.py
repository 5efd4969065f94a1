"""Telegram's errors, in Telegram's words, and the one error of our own."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class SandboxError(Exception):
    """The sandbox cannot do what a person or a test asked; the message is one line that says why and what to do."""


class ApiError(Exception):
    """An answer with "ok": false."""

    def __init__(self, code: int, description: str, parameters: Json | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


def bad_request(words: str) -> ApiError:
    return ApiError(400, f"Bad Request: {words}")


def forbidden(words: str) -> ApiError:
    return ApiError(403, f"Forbidden: {words}")


def conflict(words: str) -> ApiError:
    return ApiError(409, f"Conflict: {words}")


def too_many_requests(retry_after: int) -> ApiError:
    return ApiError(429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after})


def upgraded(supergroup: int) -> ApiError:
    return ApiError(
        400, "Bad Request: group chat was upgraded to a supergroup chat", {"migrate_to_chat_id": supergroup}
    )


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized")


def not_found() -> ApiError:
    return ApiError(404, "Not Found")


def no_such_method() -> ApiError:
    return ApiError(404, "Not Found: method not found")


def too_large() -> ApiError:
    return ApiError(413, "Request Entity Too Large")
