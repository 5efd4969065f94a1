"""A stock aiogram bot: echoes, shows buttons, pictures and files. Run with the sandbox's address and a token."""

from __future__ import annotations

import asyncio
import struct
import sys
import zlib

from aiogram import Bot, Dispatcher, F
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.filters import Command, CommandObject, CommandStart
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    CallbackQuery,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    KeyboardButton,
    Message,
    ReplyKeyboardMarkup,
)

dispatcher = Dispatcher()


def png(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\x00" + b"\x33\x90\xec" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@dispatcher.message(CommandStart(deep_link=True))
async def deep(message: Message, command: CommandObject) -> None:
    await message.answer(f"code {command.args}")


@dispatcher.message(CommandStart())
async def start(message: Message) -> None:
    keyboard = ReplyKeyboardMarkup(keyboard=[[KeyboardButton(text="Отчёт")]], resize_keyboard=True)
    await message.answer("Здравствуйте!", reply_markup=keyboard)


@dispatcher.message(Command("buttons"))
async def buttons(message: Message) -> None:
    rows = [[("Да", "yes"), ("Нет", "no"), ("Удалить", "delete")]]
    keyboard = [[InlineKeyboardButton(text=text, callback_data=data) for text, data in row] for row in rows]
    await message.answer("Точно?", reply_markup=InlineKeyboardMarkup(inline_keyboard=keyboard))


@dispatcher.message(Command("rich"))
async def rich(message: Message) -> None:
    text = '<b>жирный <i>и курсив</i></b> <tg-spoiler>тайна</tg-spoiler> <a href="https://example.com/a">ссылка</a>'
    await message.reply(
        f"{text} <code>x = 1</code><pre><code class='language-python'>print(1)</code></pre>", parse_mode="HTML"
    )


@dispatcher.message(Command("picture"))
async def picture(message: Message) -> None:
    await message.answer_photo(BufferedInputFile(png(320, 200), "chart.png"), caption="график")
    await message.answer_document(BufferedInputFile(b"%PDF-1.4", "отчёт.pdf"))


@dispatcher.message(Command("typing"))
async def typing(message: Message, bot: Bot) -> None:
    await bot.send_chat_action(message.chat.id, "typing")


@dispatcher.message(Command("link"))
async def link(message: Message, bot: Bot) -> None:
    await message.answer(f"https://t.me/{(await bot.me()).username}?start=again https://t.me/news")


@dispatcher.message(Command("script"))
async def script(message: Message) -> None:
    evil = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
    data = [[InlineKeyboardButton(text=evil[:60], callback_data="x")]]
    await message.answer(evil, reply_markup=InlineKeyboardMarkup(inline_keyboard=data))
    await message.answer_document(BufferedInputFile(b"<script>window.hacked=1</script>", f"{evil}.html"))


@dispatcher.message(F.photo)
async def photo(message: Message, bot: Bot) -> None:
    downloaded = await bot.download(message.photo[-1])
    await message.answer(f"photo of {len(downloaded.read())} bytes")


@dispatcher.message(F.document)
async def document(message: Message, bot: Bot) -> None:
    downloaded = await bot.download(message.document)
    await message.answer(f"{message.document.file_name}: {downloaded.read().decode()}")


@dispatcher.message()
async def echo(message: Message) -> None:
    await message.send_copy(message.chat.id)


@dispatcher.callback_query(F.data == "delete")
async def delete(query: CallbackQuery) -> None:
    await query.answer()
    await query.message.delete()


@dispatcher.callback_query()
async def pressed(query: CallbackQuery) -> None:
    await query.answer(f"Вы выбрали {query.data}", show_alert=query.data == "no")
    await query.message.edit_text(f"Выбрано: {query.data}")


async def main(url: str, token: str) -> None:
    bot = Bot(token, session=AiohttpSession(api=TelegramAPIServer.from_base(url)))
    await bot.set_my_commands(
        [BotCommand(command="buttons", description="Кнопки"), BotCommand(command="rich", description="Текст")]
    )
    await dispatcher.start_polling(bot, handle_signals=False)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
