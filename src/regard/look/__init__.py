"""Views of recorded model internals: a trace as plain data, in the terminal, as SVG, as an HTML page or a file."""

from regard.look.attention import AttentionGrid, AttentionView
from regard.look.candidates import CandidatesView
from regard.look.decay import DecayView, GradientDecay
from regard.look.gradients import GradientsView, gradients_through_time
from regard.look.highlighted_text import HighlightedText
from regard.look.image_overlay import ImageOverlay
from regard.look.image_views import BatchNormView, FiltersView, MapsView, PatchesView, PositionSimilarityView
from regard.look.layer_mix import LayerMixView
from regard.look.lens import LensHead
from regard.look.lens_view import LensView
from regard.look.pixel_saliency import PixelSaliency
from regard.look.recording import RecordInfo, Recording
from regard.look.saliency import Saliency
from regard.look.states import StatesView
from regard.look.sweeps import forget_sweep, spectral_sweep
from regard.look.teacher_forcing import TeacherForcedPass
from regard.look.tokens import token_label

__all__ = [
    "AttentionGrid", "AttentionView", "BatchNormView", "CandidatesView", "DecayView", "FiltersView", "GradientDecay",
    "GradientsView", "HighlightedText", "ImageOverlay", "LayerMixView", "LensHead", "LensView", "MapsView",
    "PatchesView", "PixelSaliency", "PositionSimilarityView", "RecordInfo", "Recording", "Saliency", "StatesView",
    "TeacherForcedPass", "forget_sweep", "gradients_through_time", "spectral_sweep", "token_label",
]  # fmt: skip
