"""Color scales and color maps: lightness grows with the value, every number is legible, and 0 is in the middle."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.look.color_scales import DivergingScale, LinearScale, LogScale
from regard.look.colormaps import (
    DARK,
    LIGHT,
    MAGNITUDE_STEPS,
    NEGATIVE_STEPS,
    POSITIVE_STEPS,
    SIGNS,
    ansi_background,
    blend,
    log_color,
    luminance,
    rgb,
    svg_fill,
    xterm_color,
)


def contrast(one, two):
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colormap", ["sequential", "diverging", "log"])
@pytest.mark.parametrize("depth", ["256", "24-bit"])
def test_every_number_is_legible_in_a_terminal(colormap, depth):
    for place in np.linspace(-1 if colormap == "diverging" else 0, 1, 201):
        ground, ink = ansi_background(colormap, float(place), depth)
        codes = [int(code) for code in ground.split(";")]
        color = xterm_color(codes[2]) if depth == "256" else tuple(codes[2:])
        assert contrast(color, xterm_color(ink)) >= 4.5, (place, color)


@pytest.mark.parametrize("scheme", [0, 1])
def test_every_number_is_legible_on_a_page(scheme):
    page = rgb((LIGHT, DARK)[scheme]["page"])
    black, white = (0, 0, 0), (255, 255, 255)
    inks = {"rg-low": (black, white), "rg-mid": (black, black), "rg-high": (white, black)}
    for place in np.linspace(-1, 1, 401):
        kind, _, ink = svg_fill("diverging", float(place))
        ground = blend(page, rgb(SIGNS[kind.removeprefix("rg-")][scheme]), abs(place))
        assert contrast(inks[ink][scheme], ground) >= 4.5, place
    for place in np.linspace(0, 1, 201):
        _, _, ink = svg_fill("log", float(place))
        assert contrast(black if ink == "rg-black" else white, log_color(float(place))) >= 4.5


def test_lightness_grows_with_the_value():
    light = [luminance(log_color(place)) for place in np.linspace(0, 1, 101)]
    assert light == sorted(light)
    for steps in (MAGNITUDE_STEPS, NEGATIVE_STEPS, POSITIVE_STEPS):
        light = [luminance(xterm_color(step)) for step in steps]
        assert light == sorted(light)


def test_signs_have_two_hues_and_zero_is_the_page():
    assert svg_fill("diverging", 0.0)[1] == 'fill-opacity="0.000"'
    assert svg_fill("diverging", -0.5)[0] == "rg-negative" and svg_fill("diverging", 0.5)[0] == "rg-positive"
    assert ansi_background("diverging", 0.0, "24-bit") == ansi_background("sequential", 0.0, "24-bit")


def test_zero_has_no_color_on_a_log_scale():
    scale = LogScale.fit(np.array([0.0, 1e-6, 1.0]))
    assert scale.limits == (1e-6, 1.0)
    places = scale.intensities(np.array([0.0, 1e-6, 1e-3, 1.0]))
    assert math.isnan(places[0]) and places[1:].tolist() == pytest.approx([0, 0.5, 1])
    assert svg_fill("log", math.nan)[1] == 'fill-opacity="0"'


@given(st.floats(1e-300, 1e300))
def test_a_power_of_ten_fits_its_cell(number):
    assert len(LogScale(1e-300, 1e300).format(number)) <= 6
    assert len(LogScale(1e-300, 1e300).format_short(number)) <= 6


@given(st.floats(-9.9, 9.9))
def test_a_signed_number_fits_its_cell(number):
    assert len(DivergingScale(10.0).format(number)) <= 6 and len(DivergingScale(10.0).format_short(number)) <= 4


@pytest.mark.parametrize("scale", [LinearScale(0.0), DivergingScale(0.0), LogScale(1.0, 1.0)])
def test_zeros_have_intensity_zero(scale):
    assert np.nan_to_num(scale.intensities(np.zeros((2, 2)))).tolist() == [[0, 0], [0, 0]]


def test_non_finite_numbers_are_at_the_limits_of_the_scale():
    numbers = np.array([np.nan, np.inf, -np.inf])
    assert DivergingScale(2.0).intensities(numbers).tolist() == [0, 1, -1]
    assert LinearScale(2.0).intensities(numbers).tolist() == [0, 1, 0]
    assert np.nan_to_num(LogScale(0.1, 2.0).intensities(numbers), nan=-9).tolist() == [-9, 1, -9]
