"""PNG without a browser: size, labels in all scripts, and errors."""

import struct
import sys
import zlib

import numpy as np
import pytest

from regard.errors import ConfigError
from regard.look import AttentionView
from regard.look.png import png


def pixels(data):
    """(rows, columns, 4): decode a PNG of 8 bits with transparency."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, size = 8, b"", (0, 0)
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
            assert body[8:10] == b"\x08\x06"
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(size[1], 1 + 4 * size[0])
    out = np.zeros((size[1], 4 * size[0]), np.uint8)
    for i, line in enumerate(lines):
        out[i] = unfilter(int(line[0]), line[1:], out[i - 1] if i else np.zeros_like(out[0]))
    return out.reshape(size[1], size[0], 4)


def unfilter(kind, line, above):
    now = line.astype(int)
    for x in range(len(now)):
        left, up, corner = (now[x - 4] if x > 3 else 0), int(above[x]), (int(above[x - 4]) if x > 3 else 0)
        if kind == 4:
            guess = left + up - corner
            near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
        else:
            near = {0: 0, 1: left, 2: up, 3: (left + up) // 2}[kind]
        now[x] = (now[x] + near) % 256
    return now


def view(word):
    return AttentionView("cross.weights", np.array([[0.25, 0.75]]), [word], ["je", "suis"])


def has_label(word):
    """Whether something is drawn to the left of the cells, in the row of the label."""
    drawn = pixels(png(view(word).svg(), 1.0))
    top = int(view(word).svg().split('class="rg-weight" x="')[1].split('y="')[1].split('"')[0])
    left = int(view(word).svg().split('class="rg-weight" x="')[1].split('"')[0])
    return drawn[top : top + 40, : left - 4, :3].min() < 200


@pytest.mark.parametrize("word", ["je", "étudiant", "דגל", "دانشجو", "学生", "हिन्दी", "ไทย", "студент"])
def test_labels_are_drawn_in_all_scripts(fonts, word):
    assert has_label(word)


def test_the_size_is_that_of_the_svg_times_the_zoom(fonts):
    svg = view("je").svg()
    size = [int(svg.split(f'{side}="')[1].split('"')[0]) for side in ("width", "height")]
    for zoom in (1.0, 2.0):
        assert struct.unpack(">II", png(svg, zoom)[16:24]) == tuple(int(zoom * side) for side in size)


def test_a_missing_package_is_reported_with_the_command_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ConfigError, match=r"pip install resvg-py, or write an SVG"):
        png("<svg/>")


def test_missing_fonts_are_reported_with_what_to_install(monkeypatch):
    monkeypatch.setattr("regard.look.png.has_fonts", lambda: False)
    with pytest.raises(ConfigError, match=r"no usual font was found .* \(Debian: fonts-noto-core\), or write an SVG"):
        png(view("je").svg())
