"""Truth tables of McCulloch-Pitts neurons."""

from itertools import product

import pytest

from regard.origins.neuron import AND, AND_NOT, NOT, OR, ThresholdNeuron, truth_table, xor


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (AND.fire, lambda a, b: a and b),
        (OR.fire, lambda a, b: a or b),
        (AND_NOT.fire, lambda a, b: a and not b),
        (xor, lambda a, b: a != b),
    ],
)
def test_gates_have_their_truth_tables(function, expected):
    assert truth_table(function, 2) == [(a, b, int(expected(a, b))) for a, b in product((0, 1), repeat=2)]


def test_not_is_a_threshold_of_zero_with_an_inhibitory_input():
    assert truth_table(NOT.fire, 1) == [(0, 1), (1, 0)]


def test_one_inhibitory_input_outvotes_any_number_of_excitatory_ones():
    assert ThresholdNeuron(1, inhibitory=(3,)).fire([1, 1, 1, 1]) == 0
    assert ThresholdNeuron(1, inhibitory=(3,)).fire([1, 1, 1, 0]) == 1


def test_no_single_neuron_computes_xor():
    wanted = truth_table(xor, 2)
    for threshold, inhibitory in product(range(4), [(), (0,), (1,), (0, 1)]):
        assert truth_table(ThresholdNeuron(threshold, inhibitory).fire, 2) != wanted
