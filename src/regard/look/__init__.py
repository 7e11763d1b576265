"""Looking at what was recorded: a trace becomes plain data, a heat map in the terminal, an SVG, a file."""

from regard.look.attention import AttentionGrid, AttentionView
from regard.look.decay import Decay, DecayView
from regard.look.gradients import GradientsView, gradients_through_time
from regard.look.highlighted_text import ColouredText
from regard.look.recording import Recording, Seen
from regard.look.saliency import Saliency
from regard.look.states import StatesView
from regard.look.sweeps import forget_sweep, spectral_sweep
from regard.look.teacher_forcing import Reading
from regard.look.tokens import shown

__all__ = [
    "AttentionGrid",
    "AttentionView",
    "ColouredText",
    "Decay",
    "DecayView",
    "GradientsView",
    "Reading",
    "Recording",
    "Saliency",
    "Seen",
    "StatesView",
    "forget_sweep",
    "gradients_through_time",
    "shown",
    "spectral_sweep",
]
