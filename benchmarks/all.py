"""All benchmarks, one after the other: REGARD_DATA=folder python benchmarks/all.py

Each prints its results; a missed limit makes the whole end with an error.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = [
    "padding.py",
    "training.py",
    "decoding.py",
    "recurrent.py",
    "rnnsearch.py",
    "lengths.py",
    "cold_start.py",
    "vectors.py",
    "vision.py",
    "memory.py",
    "crash.py",
    "kills.py",
]


def main() -> None:
    failed = []
    for name in NAMES:
        print(f"\n=== {name}", flush=True)
        if subprocess.run([sys.executable, str(HERE / name)], check=False).returncode:
            failed.append(name)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
