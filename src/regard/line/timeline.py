"""The line as a timeline in SVG: a row per system, with lines to the systems it builds on."""

from __future__ import annotations

from collections.abc import Sequence

from regard.line.table import Line, LineEntry, LineEvent
from regard.look.chart import LINE_COLORS
from regard.look.svg import STYLE, coord, document, escape_text, text_element, text_width
from regard.look.tokens import truncate

ROW, LEADING, TOP, WIDTH = 24, 17, 72, 980
YEAR, LANES, LANE, NAME, IDEA, RESULT = 16, 72, 20, 176, 356, 676
"""where columns begin, and the distance of two lanes"""
RADIUS = 5
TITLE = "The line, 1943 to 2023: what was new, and what was measured here"


def draw_timeline(line: Line) -> str:
    """The whole line: a row per system, and as many as its text needs per event."""
    rows, tops = line.rows(), [float(TOP)]
    for row in rows:
        tops.append(tops[-1] + (event_height(row) if isinstance(row, LineEvent) else ROW))
    lanes = {row.id: line.parts.index(row.part) for row in line.entries}
    at = {
        row.id: (LANES + lanes[row.id] * LANE, y + ROW / 2) for row, y in zip(rows, tops) if isinstance(row, LineEntry)
    }
    bands = [part for row, y in zip(rows, tops) if isinstance(row, LineEvent) for part in _event(row, y)]
    edges = [_edge(at[before], at[row.id], lanes[row.id]) for row in line.entries for before in row.after]
    systems = [part for row in line.entries for part in _system(row, *at[row.id], lanes[row.id])]
    parts = [text_element(YEAR, 28, TITLE, "rg-head"), *_legend(line.parts), *bands, *edges, *systems]
    summary = " ".join(f"{row.year}: {row.name}." for row in rows)
    return document(WIDTH, tops[-1] + 16, TITLE, summary, parts, STYLE + LANE_STYLE)


def _legend(names: Sequence[str]) -> list[str]:
    """The parts of the line with the colors of their lanes."""
    found = []
    for number, name in enumerate(names):
        x = YEAR + 16 + number * 160
        found.append(f'<circle class="rg-lane{number}" cx="{x - 8}" cy="48" r="{RADIUS}"/>')
        found.append(text_element(x, 52, name, "rg-muted"))
    return found


def _edge(start: tuple[float, float], end: tuple[float, float], lane: int) -> str:
    """A line down the lane of the earlier system that bends into that of the later one just above it."""
    (x, y), (to_x, to_y) = start, end
    bend = to_y - ROW
    path = f"M{coord(x)} {coord(y)}V{coord(bend)}C{coord(x)} {coord(to_y - 6)} {coord(to_x)} {coord(bend + 6)} "
    return f'<path class="rg-edge{lane}" d="{path}{coord(to_x)} {coord(to_y)}"/>'


def _system(entry: LineEntry, x: float, y: float, lane: int) -> list[str]:
    base = y + 4
    tooltip = escape_text(f"{entry.paper}. {entry.new} {entry.file}, {entry.lines} lines.")
    return [
        f"<g><title>{tooltip}</title>",
        text_element(YEAR, base, str(entry.year), "rg-muted"),
        f'<circle class="rg-lane{lane}" cx="{coord(x)}" cy="{coord(y)}" r="{RADIUS}"/>',
        text_element(NAME, base, entry.name, "rg-name"),
        text_element(IDEA, base, fit(entry.idea, RESULT - IDEA - 8), "rg-idea"),
        text_element(RESULT, base, fit(entry.score, WIDTH - RESULT - 8), "rg-muted"),
        "</g>",
    ]


def event_lines(event: LineEvent) -> list[str]:
    """The text of an event in lines that fit beside its name."""
    lines = [""]
    for word in (f"undisclosed. {event.text}" if event.undisclosed else event.text).split():
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, 12) <= WIDTH - IDEA - 16:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def event_height(event: LineEvent) -> float:
    """Height of the row of an event."""
    return ROW + LEADING * (len(event_lines(event)) - 1)


def _event(event: LineEvent, y: float) -> list[str]:
    lines, base = event_lines(event), y + ROW / 2 + 4
    kind, height = "rg-undisclosed" if event.undisclosed else "rg-event", event_height(event) - 4
    name = f"{event.name}, to {event.until}" if event.until else event.name
    return [
        f'<rect class="{kind}" x="8" y="{coord(y + 2)}" width="{WIDTH - 16}" height="{coord(height)}" rx="4"/>',
        text_element(YEAR, base, str(event.year), "rg-muted"),
        text_element(NAME, base, name, "rg-name"),
        *(text_element(IDEA, base + i * LEADING, text, "rg-muted") for i, text in enumerate(lines)),
    ]


def fit(text: str, width: float, size: float = 12) -> str:
    """A text that is cut at the end if it is too wide."""
    if text_width(text, size) <= width:
        return text
    return next(cut for n in range(len(text), 0, -1) if text_width(cut := truncate(text, n), size) <= width)


def _rules(scheme: int) -> str:
    lanes = "".join(
        f".rg .rg-lane{i}{{fill:{pair[scheme]}}}.rg .rg-edge{i}{{stroke:{pair[scheme]}}}"
        for i, pair in enumerate(LINE_COLORS)
    )
    band, line = (("#EEF1F4", "#8A94A0"), ("#1D232B", "#6B7580"))[scheme]
    return f"{lanes}.rg .rg-event{{fill:{band}}}.rg .rg-undisclosed{{stroke:{line}}}"


LANE_STYLE = (
    ".rg path{fill:none;stroke-width:1.5;stroke-opacity:.75}.rg .rg-name{font-weight:600}"
    ".rg .rg-undisclosed{fill:none;stroke-dasharray:4 3}"
    f"{_rules(0)}@media (prefers-color-scheme:dark){{{_rules(1)}}}"
)
