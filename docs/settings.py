"""Write the table of all settings, src/regard/settings.json, from the config classes.

    python docs/settings.py

Run it after a setting was added, renamed or documented anew: the table is what finds typos without importing torch.
"""

from __future__ import annotations

from pathlib import Path

from regard.models import preset_tables
from regard.settings_table import FILE, write_table
from regard.tasks import TASKS, recipe_class

TABLE = Path(__file__).parents[1] / "src" / "regard" / FILE


def render() -> str:
    """The table as it should be."""
    return write_table([(name, recipe_class(name)) for name in TASKS], preset_tables())


if __name__ == "__main__":
    TABLE.write_text(render(), encoding="utf-8")
