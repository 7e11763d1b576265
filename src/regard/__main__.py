"""`python -m regard` is `regard`."""

from __future__ import annotations

from regard.cli import main

if __name__ == "__main__":
    main()
