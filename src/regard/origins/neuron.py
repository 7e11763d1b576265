"""The artificial neuron: McCulloch and Pitts 1943, "A logical calculus of the ideas immanent in nervous activity".

New: a nerve cell as a logical element, on or off, so that networks of cells compute logical functions. A cell fires if
enough of its excitatory inputs are on, and never if an inhibitory input is on. Nothing is learned: thresholds and
connections are chosen by hand. Different here: a cell answers at once, where the paper counts one unit of time per
cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True)
class ThresholdNeuron:
    """A McCulloch-Pitts neuron.

    >>> [ThresholdNeuron(2).fire([a, b]) for a, b in [(0, 0), (0, 1), (1, 0), (1, 1)]]
    [0, 0, 0, 1]
    """

    threshold: int
    """number of excitatory inputs that must be on"""
    inhibitory: tuple[int, ...] = ()
    """indexes of the inhibitory inputs: any one of them keeps the neuron from firing"""

    def excitation(self, inputs: Sequence[int]) -> int:
        """Number of excitatory inputs that are on."""
        return sum(on for index, on in enumerate(inputs) if index not in self.inhibitory)

    def fire(self, inputs: Sequence[int]) -> int:
        """1 if the neuron fires, else 0."""
        if any(inputs[index] for index in self.inhibitory):
            return 0
        return int(self.excitation(inputs) >= self.threshold)


AND = ThresholdNeuron(threshold=2)
OR = ThresholdNeuron(threshold=1)
NOT = ThresholdNeuron(threshold=0, inhibitory=(0,))
AND_NOT = ThresholdNeuron(threshold=1, inhibitory=(1,))
"""fires if the first input is on and the second is off"""


def xor(inputs: Sequence[int]) -> int:
    """Exclusive or: no single neuron computes it, three in two layers do.

    >>> truth_table(xor, 2)
    [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]
    """
    a, b = inputs
    return OR.fire([AND_NOT.fire([a, b]), AND_NOT.fire([b, a])])


def truth_table(function: Callable[[Sequence[int]], int], inputs: int) -> list[tuple[int, ...]]:
    """All combinations of inputs, each followed by the output."""
    return [(*row, function(row)) for row in product((0, 1), repeat=inputs)]
