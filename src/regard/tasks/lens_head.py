"""The end of a model as a function of a layer's output: for the logit lens of a recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from regard.device import module_device
from regard.look.lens import LensHead
from regard.models.base import EncoderDecoder
from regard.models.bert import BertPretraining


def lens_head(module: nn.Module, id_to_token: Mapping[str, Callable[[int], str]]) -> LensHead | None:
    """Last norm and output projection of a model; None: it does not predict tokens of a vocabulary."""
    if isinstance(module, BertPretraining) and module.readout is not None and "source" in id_to_token:
        readout = module.readout
        return LensHead(lambda x_PD: readout(x_PD.to(module_device(module))), "encoder", "source")
    if not isinstance(module, EncoderDecoder) or "target" not in id_to_token:
        return None

    def project(x_PD: Tensor) -> Tensor | None:
        features_PD = module.decoder.lens_features(x_PD.to(module_device(module)))
        return None if features_PD is None else module.readout(features_PD)

    return LensHead(project)
