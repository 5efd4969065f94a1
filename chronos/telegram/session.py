"""One HTTP exchange with a Bot API server: limited in time, never redirected, its token in no error's words.

Says of every failure whether the request may have reached the server: aiogram's own session does not.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextvars import ContextVar
from typing import Any

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.methods import TelegramMethod
from aiogram.methods.base import TelegramType
from aiogram.types import BufferedInputFile, FSInputFile, InputFile
from aiogram.types.base import TelegramObject
from aiohttp import ClientConnectorError, ClientError, ClientResponseError, ClientTimeout, ConnectionTimeoutError

from chronos.errors import NotSent, one_line
from chronos.telegram.reasons import permanent

#: Seconds for a connection, and for one call; an upload gets more by its size.
CONNECT_SECONDS, CALL_SECONDS = 5.0, 15.0
#: The slowest line that is waited for.
UPLOAD_BYTES_PER_SECOND = 128 * 1024
#: Bytes that are allowed for when the size of an upload is not known.
UNKNOWN_UPLOAD = 20 * 1024 * 1024


class NotNow(Exception):
    """What the call was let out for is no longer so; nothing was sent."""


#: Whether the call may still leave; set by the sender.
last_look: ContextVar[Callable[[], bool] | None] = ContextVar("last_look", default=None)


class NoAnswer(Exception):
    """No whole answer came back. `reached`: the request may have been read all the same."""

    def __init__(self, reached: bool, words: str) -> None:
        super().__init__(words)
        self.reached = reached


class Session(AiohttpSession):
    async def make_request(
        self,
        bot: Bot,
        method: TelegramMethod[TelegramType],
        timeout: int | None = None,  # noqa: ASYNC109 (aiogram's)
    ) -> TelegramType:
        session = await self.create_session()
        try:
            form = self.build_form_data(bot=bot, method=method)
            seconds = allowed_seconds(method, timeout)
        except FileNotFoundError as error:
            raise permanent("file gone") from error
        except Exception as error:
            raise NotSent(one_line(error)) from error
        look = last_look.get()
        if look is not None and not look():
            raise NotNow
        url = self.api.api_url(token=bot.token, method=method.__api_method__)
        limits = ClientTimeout(total=seconds, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)
        try:
            async with session.post(url, data=form, timeout=limits, allow_redirects=False) as response:
                content = await response.text(errors="replace")
        except (ClientConnectorError, ConnectionTimeoutError) as error:
            raise NoAnswer(False, one_line(error)) from error
        except (TimeoutError, ClientError, OSError) as error:
            raise NoAnswer(True, one_line(error)) from error
        try:
            answer = self.check_response(bot=bot, method=method, status_code=response.status, content=content)
        except Exception as error:
            # 502 with HTML, a cut JSON, a 500 without a description: their classes alone do not tell them apart.
            error.http_status = response.status  # type: ignore[attr-defined]
            error.retry_after_header = response.headers.get("Retry-After")  # type: ignore[attr-defined]
            raise
        result: TelegramType = answer.result  # type: ignore[assignment]
        return result

    async def stream_content(
        self,
        url: str,
        headers: dict[str, Any] | None = None,
        timeout: int = 30,  # noqa: ASYNC109 (aiogram's)
        chunk_size: int = 65536,
        raise_for_status: bool = True,
    ) -> AsyncGenerator[bytes, None]:
        """A file's bytes. The address of a file holds the token: an error of its own is raised, without it."""
        try:
            async for chunk in super().stream_content(url, headers, timeout, chunk_size, raise_for_status):
                yield chunk
        except ClientResponseError as error:
            if 400 <= error.status < 500:
                raise permanent("file gone") from None
            raise NoAnswer(True, f"the download ended with HTTP {error.status}") from None
        except (TimeoutError, ClientError) as error:
            raise NoAnswer(True, f"the download broke off: {type(error).__name__}") from None


def allowed_seconds(method: Any, timeout: float | None) -> float:
    """A call gets 15 s; one that uploads more by its size; a long poll the time that it asks for."""
    if method.__api_method__ == "getUpdates":
        return CALL_SECONDS + (method.timeout or 0)
    if timeout is not None:
        return float(timeout)
    return CALL_SECONDS + sum(map(_bytes, _files(method))) / UPLOAD_BYTES_PER_SECOND


def _files(value: Any) -> Iterator[InputFile]:
    if isinstance(value, InputFile):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _files(item)
    elif isinstance(value, TelegramMethod | TelegramObject):
        for _, item in value:
            yield from _files(item)


def _bytes(file: InputFile) -> int:
    if isinstance(file, BufferedInputFile):
        return len(file.data)
    if isinstance(file, FSInputFile):
        return os.stat(file.path).st_size
    return UNKNOWN_UPLOAD
