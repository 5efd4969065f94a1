"""Chronos: durable tasks for a Telegram back office."""

__version__ = "0.1.0"
