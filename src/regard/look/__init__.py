"""Looking at what was recorded: a trace becomes plain data, a heat map in the terminal, an SVG, a file."""

from regard.look.recording import Recording, Seen
from regard.look.tokens import shown
from regard.look.views import AttentionGrid, AttentionView

__all__ = ["AttentionGrid", "AttentionView", "Recording", "Seen", "shown"]
