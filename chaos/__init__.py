"""Kills real processes and counts what was lost or doubled."""
