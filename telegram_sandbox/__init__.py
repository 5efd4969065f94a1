"""Telegram on this machine: a Bot API server that any bot library talks to, with a chat page for people.

    python -m telegram_sandbox --port 8081 --folder DIR

Any token of Telegram's form makes a bot. Limits, errors and their words are Telegram's; faults come on order;
a log on disk says of every request what was answered and what was stored. What people may do is in control.py,
for programs in client.py (standard library only); process.py runs the server as a child process for tests.

The package knows nothing of the programs that use it. Importing it costs nothing: see the modules.
"""
