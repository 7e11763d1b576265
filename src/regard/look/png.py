"""SVG to PNG with resvg (the `picture` extra), without a browser; any script for which fonts are installed."""

from __future__ import annotations

import re
from functools import cache

from regard.errors import ConfigError

ZOOM = 2.0
"""pixels of the PNG per pixel of the SVG: sharp on most screens and on paper"""
SANS = "'Noto Sans','DejaVu Sans','Liberation Sans',Arial,Helvetica,'Helvetica Neue','Segoe UI',Ubuntu,FreeSans,Roboto"
MONO = "'Noto Sans Mono','DejaVu Sans Mono','Liberation Mono',Menlo,Consolas,'Courier New',FreeMono"
"""font families by name: resvg does not resolve sans-serif and monospace"""
RTL_ANCHOR = re.compile(r'text-anchor="(start|end)" direction="rtl"')


def png(svg: str, zoom: float = ZOOM) -> bytes:
    """An SVG of this package as PNG, in the light color scheme."""
    try:
        import resvg_py
    except ImportError:
        message = "a PNG needs the package resvg-py; install it with: pip install resvg-py, or write an SVG"
        raise ConfigError(message) from None
    if "<text" in svg and not has_fonts():
        raise ConfigError(
            "no usual font was found on this machine, so a PNG would have no text; install Noto Sans or DejaVu Sans "
            "(Debian: fonts-noto-core), or write an SVG"
        )
    return bytes(resvg_py.svg_to_bytes(svg_string=for_resvg(svg), zoom=zoom))


def for_resvg(svg: str) -> str:
    """An SVG adapted to resvg: fonts by name, and swapped anchors of right-to-left labels: their "start" is the right
    end in a browser, the left end in resvg.

    >>> for_resvg('<text text-anchor="start" direction="rtl">')
    '<text text-anchor="end" direction="rtl">'
    """
    other = {"start": "end", "end": "start"}
    svg = RTL_ANCHOR.sub(lambda found: f'text-anchor="{other[found[1]]}" direction="rtl"', svg)
    return svg.replace(",sans-serif", f",{SANS},sans-serif").replace(",monospace", f",{MONO},monospace")


@cache
def has_fonts() -> bool:
    """Whether letters are drawn at all: an image with one differs from an image without."""
    import resvg_py

    head = '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24">'
    letters = [f'{head}<text y="20" style="font-family:{SANS}">{letter}</text></svg>' for letter in ("H", "")]
    letter, empty = (bytes(resvg_py.svg_to_bytes(svg_string=text)) for text in letters)
    return letter != empty
