"""Benchmarks: everything is measured in one run, interleaved, against a named peer."""
