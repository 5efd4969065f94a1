"""The bot: people write, updates are stored first, then handled; every task that they ask for is a row."""
