"""A clock that jumps: `make chapters` puts this folder on the path of each chapter's kernel.

What a cell measures there is some number between a microsecond and a quarter of an hour, so a cell
that asserts a time, or a ratio of times, fails on a quiet machine, too.
"""

import sys
import time

if "ipykernel_launcher" in " ".join(sys.orig_argv):
    import random

    _random, _now = random.Random(0), 0.0

    def _jumping() -> float:
        global _now
        _now += 10 ** _random.uniform(-6, 3)
        return _now

    time.perf_counter = time.process_time = time.thread_time = _jumping
