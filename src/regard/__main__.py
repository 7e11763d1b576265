"""The program: `python -m regard`, and the script `regard`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a Ctrl-C while its modules are imported ends like a later one."""
    try:
        from regard.cli import main as run_cli

        run_cli()
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
