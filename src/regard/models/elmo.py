"""ELMo: Peters et al. 2018, "Deep Contextualized Word Representations"; characters as in Kim et al. 2016.

New against word vectors: the vector of a word depends on its sentence. Two LSTM language models, one reading forwards
and one backwards, share the embedding, which is computed from characters, and the softmax; a task takes their layers
as gamma * sum(softmax(w)_j h_j) and learns w and gamma. Different here: padding characters take no part in the
convolutions, states are not clipped, the softmax has no bias; without a projection (cells = width) an LSTM has torch's
two biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from regard.config import check_at_least, check_share
from regard.errors import ConfigError
from regard.models.base import Decoder, EmptyEncoder, Encoder, EncoderDecoder, ModelConfigBase, RecordedValues, State
from regard.models.recurrent import require_unpacked
from regard.models.seq2seq import StackState
from regard.nn.bridge import show_initial
from regard.nn.character_cnn import CharacterCNN
from regard.nn.projected_lstm import ProjectedLSTM
from regard.nn.recurrent import LSTM, Recurrent, States, set_forget_bias
from regard.nn.spelling import spell, spelling_table
from regard.plurals import count_noun
from regard.sequence import Memory, Padded, Tokens
from regard.spaces import InputSpace, Space, SpelledInput, SpelledWords, Words
from regard.trace import tap, trace_context, without_recording


@dataclass(frozen=True)
class ELMoConfig(ModelConfigBase):
    """Config of a bidirectional language model over characters; the defaults are the paper's."""

    kind: Literal["elmo"] = "elmo"
    """Peters et al. 2018"""
    layers: int = 2
    """LSTM layers of each direction; from the second on with a residual connection"""
    width: int = 512
    """width of the word vectors and of each layer's output, in each direction"""
    cells: int = 4096
    """LSTM cells of each layer, projected to width; as many as width: no projection"""
    dropout: float = 0.1
    """dropout before each layer and before the softmax"""
    characters: int = 16
    """width of a character embedding"""
    filters: tuple[int, ...] = (32, 32, 64, 128, 256, 512, 1024)
    """number of convolution filters over 1, 2, 3 ... characters"""
    highways: int = 2
    """highway layers after the convolutions"""
    softmax_words: int = 0
    """words that are predicted, the most frequent; the others are read, and predicted as <UNK>. 0: all"""
    samples: int = 0
    """words of the sampled softmax in training, drawn for each batch; 0: the whole softmax"""

    bidirectional_lm: ClassVar[bool] = True
    reads_spellings: ClassVar[bool] = True
    embeds_word_ids: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_at_least(self, 1, "layers", "width", "characters")
        check_at_least(self, 0, "highways", "softmax_words", "samples")
        check_share(self, "dropout")
        if self.cells < self.width:
            raise ConfigError(f"cells = {self.cells} must be at least width = {self.width}, to which it is projected")
        if not self.filters or min(self.filters) < 0 or not sum(self.filters):
            raise ConfigError(f"filters = {list(self.filters)}: expected numbers of filters over 1, 2 ... characters")

    def check_shared_vocab(self, shared: bool) -> None:
        raise ConfigError('model.kind = "elmo" reads no source, so it cannot translate; use transformer or seq2seq')

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        cells = f", {self.cells} cells" if self.cells != self.width else ""
        return f"elmo {count_noun(self.layers, 'layer')}, both directions, width {self.width}{cells}"

    @property
    def language_models(self) -> ELMoConfig:
        return self

    def build(self, source: Space, target: Space) -> BidirectionalLM:
        """The two language models, with fresh weights; `source` is not used."""
        return BidirectionalLM(self, target)

    def build_encoder(self, source: InputSpace) -> ELMo:
        """The layers and their mix, with fresh weights; the caller attaches a head."""
        return ELMo(character_cnn(self, source), ResidualStack(self), ResidualStack(self))


def character_cnn(config: ELMoConfig, space: InputSpace) -> CharacterCNN:
    """The embedding of words by their characters."""
    if isinstance(space, SpelledInput):
        space = SpelledWords(1, vocabulary=("<PAD>",))
    if not isinstance(space, Words):
        raise ConfigError('model.kind = "elmo" reads the characters of words, and there are none; use rnnlm')
    vocabulary = space.vocabulary if isinstance(space, SpelledWords) else ()
    spellings = spelling_table(vocabulary, space.size)
    return CharacterCNN(spellings, config.characters, config.filters, config.highways, config.width)


class ResidualStack(nn.Module):
    """Stacked LSTMs in one direction, with a residual connection around each but the lowest."""

    def __init__(self, config: ELMoConfig) -> None:
        super().__init__()
        width, cells = config.width, config.cells
        self.layers = nn.ModuleList(
            LSTM(width, width) if cells == width else ProjectedLSTM(width, width, cells) for _ in range(config.layers)
        )
        self.dropout = nn.Dropout(config.dropout)
        set_forget_bias(self, 1.0)

    def layer_list(self) -> list[Recurrent]:
        """The layers, the lowest first."""
        return list(self.layers)  # type: ignore[arg-type]

    def zeros(self, like: Tensor) -> States:
        """Zero states of all layers."""
        return tuple(layer.zeros(like) for layer in self.layer_list())

    def forward(self, x: Padded, states: States) -> tuple[tuple[Tensor, ...], States]:
        """(outputs of each layer, state of each layer)."""
        outs, ends = list[Tensor](), []
        for layer, state in zip(self.layers, states, strict=True):
            out_BLD, end = layer(x.like(self.dropout(x.data)), state)
            x = x.like(tap(layer, "residual_sum", out_BLD + x.data, "batch position width") if outs else out_BLD)
            outs.append(x.data)
            ends.append(end)
        return tuple(outs), tuple(ends)


class CharacterLM(Decoder):
    """A language model in one direction; embedding and softmax are given, since the other direction has the same."""

    def __init__(self, config: ELMoConfig, embed: CharacterCNN, readout: nn.Module) -> None:
        super().__init__()
        self.embed, self.readout = embed, readout
        self.stack, self.dropout = ResidualStack(config), nn.Dropout(config.dropout)

    def start(self, memory: Memory, max_tokens: int) -> State:
        zeros = self.stack.zeros(memory.states.data)
        return State(memory.states, StackState(show_initial(self.stack.layer_list(), zeros)))

    def lens_features(self, x_PD: Tensor, recorded: RecordedValues) -> Tensor:
        return x_PD

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        x_NTD = self.embed(require_unpacked(tokens).data)
        x_NTD = tap(self, "embedding", x_NTD, "batch position:target width")
        with trace_context(reads="target"):
            outs, ends = self.stack(tokens.like(x_NTD), state.hypothesis.layers)
        features_NTD = tap(self, "features", self.dropout(outs[-1]), "batch position:target width")
        return features_NTD, replace(state, hypothesis=StackState(ends))


class BidirectionalLM(EncoderDecoder):
    """The forward language model, and `backward_decoder`, which reads texts from their end; they share both ends."""

    def __init__(self, config: ELMoConfig, space: Space) -> None:
        embed = character_cnn(config, space)
        predicted = min(config.softmax_words or embed.size, embed.size)
        readout = Words(predicted).head(config.width)
        super().__init__(EmptyEncoder(), CharacterLM(config, embed, readout))
        self.backward_decoder, self.samples = CharacterLM(config, embed, readout), config.samples

    def contextual_encoder(self) -> ELMo:
        """The encoder that reads by these two language models: it shares their weights."""
        forward: Any = self.decoder
        return ELMo(forward.embed, forward.stack, self.backward_decoder.stack).eval()


class ScalarMix(nn.Module):
    """gamma * sum(softmax(w)_j h_j): a learned mean of layers (equation 1)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weight, self.gamma = nn.Parameter(torch.zeros(layers)), nn.Parameter(torch.ones(()))

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        weights_J = tap(self, "weights", self.weight.softmax(0), "layer")
        return self.gamma * sum(weight * layer for weight, layer in zip(weights_J.unbind(), layers, strict=True))


class ELMo(Encoder):
    """Contextual word vectors: the word vector twice, then the layers of both directions, mixed.

    Both directions start from the end of another text, which is what they read before a text in training.
    """

    def __init__(self, embed: Any, stack: ResidualStack, backward_stack: ResidualStack) -> None:
        super().__init__()
        self.embed, self.stack, self.backward_stack = embed, stack, backward_stack
        self.mix, self.width = ScalarMix(len(stack.layers) + 1), 2 * embed.width
        self.register_buffer("edge", torch.tensor([[spell("<EOS>")]]), persistent=False)

    def forward(self, source: Tokens) -> Memory:
        edge = Tokens.full(self.embed(self.get_buffer("edge")).expand(len(source), -1, -1))
        ids = require_unpacked(source).data
        x_BSD = self.embed(ids[..., 1:] if ids.ndim == 3 else ids)  # spelled words have an id first
        x = source.like(tap(self, "embedding", x_BSD, "batch position:source width"))
        directions = []
        for stack, read in ((self.stack, x), (self.backward_stack, x.reverse())):
            with without_recording():  # the end of another text is no position of this one
                start = stack(edge, stack.zeros(x.data))[1]
            with trace_context(reads="source", backwards=read is not x):
                outs, _ = stack(read, start)
            directions.append([out if read is x else x.like(out).reverse().data for out in outs])
        layers = [torch.cat([x.data] * 2, -1), *(torch.cat(pair, -1) for pair in zip(*directions, strict=True))]
        layers = [tap(self, f"layer{i}", layer, "batch position:source width") for i, layer in enumerate(layers)]
        return Memory(x.like(self.mix(layers)), (), tuple(layers))
