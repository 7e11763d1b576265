"""Scales and colours: more is never darker, every number can be read on its colour, and 0 is in the middle."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.look.color_scales import Powers, Share, Signed
from regard.look.colormaps import (
    DARK,
    LIGHT,
    MAGNITUDE_STEPS,
    NEGATIVE_STEPS,
    POSITIVE_STEPS,
    SIGNS,
    fixed,
    in_terminal,
    luminance,
    magnitude,
    mixed,
    on_page,
    rgb,
)


def contrast(one, two):
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("ramp", ["weight", "signed", "log"])
@pytest.mark.parametrize("depth", ["256", "24-bit"])
def test_every_number_can_be_read_in_a_terminal(ramp, depth):
    for place in np.linspace(-1 if ramp == "signed" else 0, 1, 201):
        ground, ink = in_terminal(ramp, float(place), depth)
        codes = [int(code) for code in ground.split(";")]
        colour = fixed(codes[2]) if depth == "256" else tuple(codes[2:])
        assert contrast(colour, fixed(ink)) >= 4.5, (place, colour)


@pytest.mark.parametrize("scheme", [0, 1])
def test_every_number_can_be_read_on_a_page(scheme):
    page = rgb((LIGHT, DARK)[scheme]["page"])
    black, white = (0, 0, 0), (255, 255, 255)
    inks = {"rg-low": (black, white), "rg-mid": (black, black), "rg-high": (white, black)}
    for place in np.linspace(-1, 1, 401):
        kind, _, ink = on_page("signed", float(place))
        ground = mixed(page, rgb(SIGNS[kind.removeprefix("rg-")][scheme]), abs(place))
        assert contrast(inks[ink][scheme], ground) >= 4.5, place
    for place in np.linspace(0, 1, 201):
        _, _, ink = on_page("log", float(place))
        assert contrast(black if ink == "rg-black" else white, magnitude(float(place))) >= 4.5


def test_more_is_never_darker():
    light = [luminance(magnitude(place)) for place in np.linspace(0, 1, 101)]
    assert light == sorted(light)
    for steps in (MAGNITUDE_STEPS, NEGATIVE_STEPS, POSITIVE_STEPS):
        light = [luminance(fixed(step)) for step in steps]
        assert light == sorted(light)


def test_signs_have_two_hues_and_zero_is_the_page():
    assert on_page("signed", 0.0)[1] == 'fill-opacity="0.000"'
    assert on_page("signed", -0.5)[0] == "rg-negative" and on_page("signed", 0.5)[0] == "rg-positive"
    assert in_terminal("signed", 0.0, "24-bit") == in_terminal("weight", 0.0, "24-bit")


def test_zero_has_no_colour_among_powers_of_ten():
    scale = Powers.of(np.array([0.0, 1e-6, 1.0]))
    assert scale.ends == (1e-6, 1.0)
    places = scale.strengths(np.array([0.0, 1e-6, 1e-3, 1.0]))
    assert math.isnan(places[0]) and places[1:].tolist() == pytest.approx([0, 0.5, 1])
    assert on_page("log", math.nan)[1] == 'fill-opacity="0"'


@given(st.floats(1e-300, 1e300))
def test_a_power_of_ten_fits_its_cell(number):
    assert len(Powers(1e-300, 1e300).told(number)) <= 6
    assert len(Powers(1e-300, 1e300).brief(number)) <= 6


@given(st.floats(-9.9, 9.9))
def test_a_signed_number_fits_its_cell(number):
    assert len(Signed(10.0).told(number)) <= 6 and len(Signed(10.0).brief(number)) <= 4


@pytest.mark.parametrize("scale", [Share(0.0), Signed(0.0), Powers(1.0, 1.0)])
def test_nothing_but_zeros_has_a_place(scale):
    assert np.nan_to_num(scale.strengths(np.zeros((2, 2)))).tolist() == [[0, 0], [0, 0]]


def test_what_is_no_number_has_a_place_at_the_ends():
    numbers = np.array([np.nan, np.inf, -np.inf])
    assert Signed(2.0).strengths(numbers).tolist() == [0, 1, -1]
    assert Share(2.0).strengths(numbers).tolist() == [0, 1, 0]
    assert np.nan_to_num(Powers(0.1, 2.0).strengths(numbers), nan=-9).tolist() == [-9, 1, -9]
