"""Kills real processes and counts what was lost or doubled; every figure is judged from outside."""
