"""Trains the studio's built-in example by its recipe and packs it into the package: python docs/example.py [FOLDER].

The run stays in FOLDER (build/example), where an interrupted training resumes.
"""

import subprocess
import sys
from pathlib import Path

from regard.exchange.pack import pack_run

STUDIO = Path(__file__).parents[1] / "src" / "regard" / "studio"
MOST_BYTES = 1 << 20


def main() -> None:
    run = Path(sys.argv[1] if len(sys.argv) > 1 else "build/example")
    subprocess.run([sys.executable, "-m", "regard", "train", STUDIO / "example.toml", "--out", run], check=True)
    (run / "environment.json").unlink(missing_ok=True)  # the machine that trained it does not belong into the package
    pack = STUDIO / "example.regard"
    pack.unlink(missing_ok=True)
    pack_run(run, pack)
    size = pack.stat().st_size
    assert size < MOST_BYTES, f"{pack} has {size:,} bytes, expected less than {MOST_BYTES:,}"
    print(f"{pack}: {size:,} bytes")


if __name__ == "__main__":
    main()
