"""SVG to PNG without a browser, by resvg (the `picture` extra): any script, as far as the machine has fonts for it."""

from __future__ import annotations

import re
from functools import cache

from regard.errors import ConfigError

ZOOM = 2.0
"""pixels of the picture for each of the SVG's own: sharp on most screens and on paper"""
SANS = "'Noto Sans','DejaVu Sans','Liberation Sans',Arial,Helvetica,'Helvetica Neue','Segoe UI',Ubuntu,FreeSans,Roboto"
MONO = "'Noto Sans Mono','DejaVu Sans Mono','Liberation Mono',Menlo,Consolas,'Courier New',FreeMono"
"""families by name: resvg does not ask the machine what it takes for sans-serif or monospace"""
TURNED = re.compile(r'text-anchor="(start|end)" direction="rtl"')


def png(svg: str, zoom: float = ZOOM) -> bytes:
    """An SVG that this package drew, as the bytes of a PNG: light, whatever the reader's screen is.

    >>> png('<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>')[1:4]
    b'PNG'
    """
    try:
        import resvg_py
    except ImportError:
        told = 'a PNG is drawn by the package resvg-py; install it with: pip install "regard[picture]", or write an SVG'
        raise ConfigError(told) from None
    if "<text" in svg and not has_fonts():
        raise ConfigError(
            "no usual font was found on this machine, so a PNG would have no words; install Noto Sans or DejaVu Sans "
            "(Debian: fonts-noto-core), or write an SVG"
        )
    return bytes(resvg_py.svg_to_bytes(svg_string=plain(svg), zoom=zoom))


def plain(svg: str) -> str:
    """An SVG as resvg understands it: fonts by name, and labels that run from right to left held by the end that resvg
    means. A browser takes "start" for their right end, resvg for their left one.

    >>> plain('<text text-anchor="start" direction="rtl">')
    '<text text-anchor="end" direction="rtl">'
    """
    other = {"start": "end", "end": "start"}
    svg = TURNED.sub(lambda found: f'text-anchor="{other[found[1]]}" direction="rtl"', svg)
    return svg.replace(",sans-serif", f",{SANS},sans-serif").replace(",monospace", f",{MONO},monospace")


@cache
def has_fonts() -> bool:
    """Whether letters are drawn at all: a picture with one differs from a picture without.

    >>> has_fonts() in (True, False)
    True
    """
    import resvg_py

    head = '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24">'
    letters = [f'{head}<text y="20" style="font-family:{SANS}">{letter}</text></svg>' for letter in ("H", "")]
    drawn, empty = (bytes(resvg_py.svg_to_bytes(svg_string=letter)) for letter in letters)
    return drawn != empty
