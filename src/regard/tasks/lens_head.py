"""The end of each family of models, as a function of its recorded values: for the logit lens of a recording."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.device import module_device
from regard.look.condense import FIRST_PIECES
from regard.look.decoding_path import DECODED_LABELS
from regard.look.image_overlay import find_image
from regard.look.lens import ANSWER, LABEL, NEXT, TOKEN, LensHead, LensLayers, NoLens, no_lens, sequence_facts
from regard.look.lens_layers import LayerOutput, layer_outputs, text_length
from regard.models.base import Classifier, EncoderDecoder, Tagger
from regard.models.bert import BertPretraining
from regard.models.crf_tagger import CRFTagger
from regard.models.elmo import ELMo
from regard.models.luong import LuongDecoder
from regard.models.rnnsearch import RNNsearchDecoder
from regard.sequence import Memory, Padded
from regard.trace import Record

NUMBERS = "this model predicts numbers, and the lens compares probabilities of tokens or labels; use --view states"
NO_LAYERS = "this model has no layers between its embedding and its output; use --view states"
MAPS = (
    "the feature maps of a convolutional network differ in channels and size from layer to layer, and the head reads "
    "the last ones only; use --view maps"
)
OTHER_END = "the head of this model reads more than its last layer, so no layer alone gives a prediction"
ONE_LAYER = "one layer: its row is the model's own prediction"
READS = {
    LuongDecoder: "each state is read with the context vector of its position, which the top layer attended to",
    RNNsearchDecoder: "the readout takes the state before each step, with the word and the context vector of the step",
}
"""notes: what a readout takes beside the state of a layer"""
CLOSE = 1e-2
"""largest difference between the logits of the last layer and those that were recorded, as a share of the largest"""


def lens_head(module: nn.Module, id_to_token: Mapping[str, Callable[[int], str]]) -> LensHead:
    """The end of a model; a NoLens where its layers cannot be read by it, with the reason."""
    if isinstance(module, BertPretraining):
        return NoLens(NO_LAYERS) if module.readout is None else MaskedLMLens(module)
    if isinstance(module, EncoderDecoder):
        return DecoderLens(module) if "target" in id_to_token else NoLens(NUMBERS)
    if isinstance(module, Tagger | CRFTagger):
        return TaggerLens(module) if not isinstance(module, CRFTagger) else CRFLens(module)
    if isinstance(module, Classifier):
        return ClassifierLens(module)
    return NoLens(NUMBERS if hasattr(module, "encoder") else NO_LAYERS)


def _same_width(layers: Sequence[LayerOutput]) -> list[LayerOutput]:
    """Layers as wide as the last one: the others cannot be read by the same end."""
    return [layer for layer in layers if layer.states.shape[1] == layers[-1].states.shape[1]]


def _notes(layers: Sequence[LayerOutput], read: Sequence[LayerOutput]) -> list[str]:
    """Which layers have no row, and whether there is one row only."""
    wide = [
        f"{layer.title} has no row: it has {layer.states.shape[1]} units, and the end reads {read[-1].states.shape[1]}"
        for layer in layers
        if layer.states.shape[1] != read[-1].states.shape[1]
    ]
    return [*wide, ONE_LAYER] if len(read) == 1 else wide


def find_record(records: Sequence[Record], name: str) -> Record:
    """The condensed record of a name, which the end of a model reads."""
    found = next((record for record in records if record.name == name), None)
    if found is None:
        raise no_lens(f"{name} was not recorded; record the whole prediction, from the encoder on")
    return found


class ModuleLens(LensHead):
    """The end of a model with an output projection."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def logits(self, features_PD: Tensor) -> Tensor:
        logits_PV: Tensor = self.module.readout(features_PD.to(module_device(self.module)))
        return logits_PV

    def on_device(self, x: Tensor) -> Tensor:
        """A recorded value where the model is."""
        return x.to(module_device(self.module))


class DecoderLens(ModuleLens):
    """The end of a decoder: language models, translators and captioners."""

    def layers(self, records: Sequence[Record]) -> LensLayers:
        decoder = self.module.decoder

        def values_of(name: str) -> Tensor:
            record = find_record(records, f"decoder.{name}")
            return self.on_device(record.data[0, 0] if "head" in record.axes else record.data[0])

        outputs = layer_outputs(records, "decoder")
        if not outputs:
            raise no_lens(NO_LAYERS)
        read = _same_width(outputs)
        features = [decoder.lens_features(self.on_device(layer.states), values_of) for layer in read]
        if features[-1] is None:
            kind = type(decoder).__name__
            raise no_lens(f"{kind} has no lens_features(), which reads the output of any layer as that of the last one")
        notes = [note for kind, note in READS.items() if isinstance(decoder, kind)] + _notes(outputs, read)
        facts = sequence_facts(records)
        places, count = facts.get("read"), len(read[-1].states)
        places = places if places is not None and len(places[0]) == count else None
        last = facts["target"][0][-1:] if facts.get("target") and len(facts["target"][0]) else [""]
        actual = [""] * count if places is None else [*places[0][1:], *last]
        return LensLayers([layer.title for layer in read], features, places, actual, NEXT, notes=notes)


class MaskedLMLens(ModuleLens):
    """The end of a masked language model: its head reads any layer of the encoder."""

    side = "source"

    def layers(self, records: Sequence[Record]) -> LensLayers:
        read = layer_outputs(records, "encoder")
        if not read:
            raise no_lens(NO_LAYERS)
        source, count = sequence_facts(records).get("source"), len(read[-1].states)
        places = source if source is not None and len(source[0]) == count else None
        actual = [""] * count if places is None else list(places[0])
        features = [layer.states for layer in read]
        return LensLayers([layer.title for layer in read], features, places, actual, TOKEN, notes=_notes(read, read))


class ReaderLens(ModuleLens):
    """The end of a model that reads a text and gives labels."""

    side = LABEL

    def layers(self, records: Sequence[Record]) -> LensLayers:
        logits = next((record for record in records if record.name == "logits"), None)
        names = None if logits is None else logits.labels.get("label") or logits.context.get("label")
        if logits is None or not names:
            raise no_lens(NUMBERS)
        outputs = self.encoder_layers(records)
        if not outputs or not len(outputs[-1].states):
            raise no_lens(MAPS if find_image(records) is not None else NO_LAYERS)
        read = _same_width(outputs)
        features = [self.features(layer, records) for layer in read]
        expected = logits.data[0].reshape(-1, len(names))[: len(features[-1])]
        self._check(features[-1], expected)
        ids = self.answer(records, expected)
        whole, count, facts = logits.axes == ("batch", "label"), len(features[-1]), sequence_facts(records)
        sides = (side for side in ("word", "source") if side in facts and len(facts[side][0]) == count)
        places = None if whole else next((facts[side] for side in sides), None)
        actual, labels = [str(names[i]) for i in ids], tuple(map(str, names))
        titles, notes = [layer.title for layer in read], _notes(outputs, read)
        return LensLayers(titles, features, places, actual, ANSWER, labels, whole, notes)

    def encoder_layers(self, records: Sequence[Record]) -> list[LayerOutput]:
        """Outputs of the encoder's layers as its memory would hold them; of an ELMo, those that its mix weighs."""
        encoder = self.module.encoder
        if isinstance(encoder, ELMo):
            return self._mixed_layers(records)
        found = [(layer, self.on_device(layer.states)) for layer in layer_outputs(records, "encoder")]
        width = found[-1][1].shape[1] if found else 0
        return [
            LayerOutput(layer.title, encoder.lens_states(x_SD), self.on_device(layer.final))
            if x_SD.shape[1] == width
            else layer
            for layer, x_SD in found
        ]

    def _mixed_layers(self, records: Sequence[Record]) -> list[LayerOutput]:
        """Each layer as if the mix gave it all of its weight, and the mix itself."""
        mix, length = self.module.encoder.mix, text_length(records)
        weights_J = self.on_device(find_record(records, "encoder.mix.weights").data[0])
        found = [find_record(records, f"encoder.layer{i}") for i in range(len(weights_J))]
        layers = [self.on_device(record.data[0, :length]) for record in found]
        layers.append(torch.stack([weight * x for weight, x in zip(weights_J.unbind(), layers, strict=True)]).sum(0))
        titles = [*(f"layer {i}" for i in range(len(layers) - 1)), "mix"]
        scaled = [mix.gamma * layer for layer in layers]
        return [LayerOutput(title, x_SD, x_SD[-1:].flatten()) for title, x_SD in zip(titles, scaled, strict=True)]

    @abstractmethod
    def features(self, layer: LayerOutput, records: Sequence[Record]) -> Tensor:
        """(P, D): what the head reads of a layer."""

    def answer(self, records: Sequence[Record], logits: Tensor) -> list[int]:
        """Label of each position that the model chose."""
        return logits.argmax(-1).tolist()

    def _check(self, last_PD: Tensor, expected_PC: Tensor) -> None:
        """Refuse a model whose head reads more than its last layer, by the logits that were recorded."""
        found_PC, bound = self.logits(last_PD).cpu().float(), CLOSE * max(1.0, float(expected_PC.abs().max()))
        if found_PC.shape != expected_PC.shape or not torch.allclose(found_PC, expected_PC, rtol=0, atol=bound):
            raise no_lens(OTHER_END)


class ClassifierLens(ReaderLens):
    """The end of a classifier: its pooling of a layer's states, and its head."""

    def features(self, layer: LayerOutput, records: Sequence[Record]) -> Tensor:
        states = Padded(layer.states[None], torch.tensor([len(layer.states)], device=layer.states.device), ragged=False)
        final = ((layer.final[None],),) if self.module.encoder.final else ()
        pooled_1D: Tensor = self.module.pool(Memory(states, final))
        return pooled_1D


class TaggerLens(ReaderLens):
    """The end of a tagger: its head reads a layer's state at each word, or at the first piece of each word."""

    def features(self, layer: LayerOutput, records: Sequence[Record]) -> Tensor:
        pieces = next((r.context[FIRST_PIECES] for r in records if FIRST_PIECES in r.context), None)
        if pieces is None:
            return layer.states
        words = next(len(record.data[0]) for record in records if record.name == "logits")
        return layer.states[pieces[0][:words].to(layer.states.device)]


class CRFLens(TaggerLens):
    """The end of a tagger with a CRF: marginal probabilities of the labels, by the emissions of a layer."""

    chunk = None

    def probabilities(self, features_PD: Tensor) -> Tensor:
        emissions_PC = self.logits(features_PD)
        lengths = torch.tensor([len(emissions_PC)], device=emissions_PC.device)
        marginals_1PC: Tensor = self.module.crf.marginals(Padded(emissions_PC[None], lengths, ragged=False))
        return marginals_1PC[0].cpu().double()

    def answer(self, records: Sequence[Record], logits: Tensor) -> list[int]:
        """Labels that the Viterbi algorithm decoded."""
        found = next((record.data[0].tolist() for record in records if record.name == DECODED_LABELS), None)
        return super().answer(records, logits) if found is None else found[: len(logits)]
