"""Worker processes that read images end with the process that started them."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys

from helpers import wait_until

READER = """
import fcntl, sys, time
from regard.data.images import ImageShape
from regard.tasks.classify.images import read_images

lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
images = read_images([f"digits#test/{i}" for i in range(1000)], ImageShape(28, 28, 1))
next(images)
print("reading", flush=True)
time.sleep(600)
"""


def test_workers_of_a_killed_process_keep_no_lock(tmp_path):
    path = tmp_path / "lock"
    process = subprocess.Popen([sys.executable, "-c", READER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "reading\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    with path.open() as lock:

        def is_free() -> bool:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        wait_until(is_free, "no worker holds the lock of the killed process")
