"""`make chaos`: the faults as tests until the figures of docs/roadmap.md are here."""

import sys

import pytest

sys.exit(pytest.main(["tests/test_faults.py", *(["-k", sys.argv[1]] if len(sys.argv) > 1 else [])]))
