"""AlexNet, ResNet and the Vision Transformer against torchvision's layout and Hugging Face with the same weights."""

import pytest
import torch
from torch import nn
from transformers import ResNetConfig as HFResNetConfig
from transformers import ResNetForImageClassification, ViTForImageClassification
from transformers import ViTConfig as HFViTConfig

from regard.errors import ConfigError, DataError
from regard.models import PRESETS
from regard.models.alexnet import AlexNetConfig
from regard.models.base import Classifier
from regard.models.cnn import CNNConfig
from regard.models.pooling import make_pooling
from regard.models.resnet import ResNetConfig
from regard.models.vit import ViTConfig
from regard.sequence import Images
from regard.spaces import Classes, Pixels
from regard.train.weights import load_weights

CLOSE = {"atol": 1e-4, "rtol": 1e-4}


def classifier(config, space, classes, pool="mean"):
    encoder = config.build_encoder(space)
    return Classifier(encoder, make_pooling(pool, encoder), Classes(classes), encoder.width)


def logits(model, pixels):
    return model.readout(model(Images(pixels)))


def shaken(model):
    """Every number drawn, norms and their running statistics too: a wrong mapping must not hide behind 0 and 1."""
    torch.manual_seed(5)
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            noise = torch.randn_like(tensor) * 0.1
            tensor += noise.abs() if name.endswith("running_var") else noise
    return model


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("alexnet", 61_100_840), ("resnet-18", 11_689_512), ("resnet-34", 21_797_672), ("resnet-50", 25_557_032),
        ("resnet-20", 269_722), ("vit-b16", 86_567_656),
    ],
)  # fmt: skip
def test_the_published_shapes_have_the_published_number_of_parameters(name, count):
    assert PRESETS[name].parameters == count


def test_alexnet_equals_the_layers_of_torchvision_under_its_names():
    features = nn.Sequential(
        nn.Conv2d(3, 64, kernel_size=11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(kernel_size=3, stride=2),
        nn.Conv2d(64, 192, kernel_size=5, padding=2), nn.ReLU(), nn.MaxPool2d(kernel_size=3, stride=2),
        nn.Conv2d(192, 384, kernel_size=3, padding=1), nn.ReLU(), nn.Conv2d(384, 256, kernel_size=3, padding=1),
        nn.ReLU(), nn.Conv2d(256, 256, kernel_size=3, padding=1), nn.ReLU(), nn.MaxPool2d(kernel_size=3, stride=2),
    )  # fmt: skip
    dense = nn.Sequential(
        nn.Dropout(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(),
        nn.Linear(4096, 7),
    )  # fmt: skip
    theirs = nn.ModuleDict({"features": features, "classifier": dense}).eval()
    ours = classifier(AlexNetConfig(), Pixels(3, 96, 80), 7).eval()
    names = {f"encoder.{name}": tensor for name, tensor in theirs.state_dict().items() if "classifier.6" not in name}
    head = {f"readout.{part}": theirs.state_dict()[f"classifier.6.{part}"] for part in ("weight", "bias")}
    load_weights(ours, names | head)
    pixels = torch.randn(2, 3, 96, 80)
    pooled = nn.AdaptiveAvgPool2d((6, 6))(features(pixels)).flatten(1)
    torch.testing.assert_close(logits(ours, pixels), dense(pooled), **CLOSE)


RESNET_PARTS = {
    "encoder.stem.": "resnet.embedder.embedder.",
    "encoder.stages.": "resnet.encoder.stages.",
    ".convs.": ".layer.",
    "shortcut.conv.": "shortcut.",
    "conv.": "convolution.",
    "norm.": "normalization.",
    "readout.": "classifier.1.",
}


def hugging_face_resnet_name(name):
    for ours, theirs in RESNET_PARTS.items():
        name = name.replace(ours, theirs)
    stages, _, rest = name.partition("stages.")
    number, _, rest = rest.partition(".")
    return f"{stages}stages.{number}.layers.{rest}" if rest else name


@pytest.mark.parametrize("block", ["basic", "bottleneck"])
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_resnet_equals_hugging_face_with_its_batch_statistics(block, training):
    wide = 4 if block == "bottleneck" else 1
    sizes = [8 * wide, 16 * wide, 32 * wide]
    config = HFResNetConfig(
        embedding_size=8, hidden_sizes=sizes, depths=[1, 2, 1], layer_type=block, num_labels=5, num_channels=3
    )
    theirs = shaken(ResNetForImageClassification(config)).train(training)
    ours = classifier(ResNetConfig(depths=(1, 2, 1), width=8, block=block), Pixels(3, 40, 40), 5).train(training)
    load_weights(ours, {name: theirs.state_dict()[hugging_face_resnet_name(name)] for name in ours.state_dict()})
    pixels = torch.randn(3, 3, 40, 40)
    torch.testing.assert_close(logits(ours, pixels), theirs(pixels).logits, **CLOSE)
    found = ours.state_dict()["encoder.stages.1.1.convs.0.norm.running_mean"]  # moved by the batch in training
    expected = theirs.state_dict()["resnet.encoder.stages.1.layers.1.layer.0.normalization.running_mean"]
    torch.testing.assert_close(found, expected, **CLOSE)


def vit_tensors(theirs, layers):
    """Hugging Face's weights under our names."""
    found = {"encoder.cls_token": "vit.embeddings.cls_token", "encoder.positions": "vit.embeddings.position_embeddings"}
    for part in ("weight", "bias"):
        found[f"encoder.embed.{part}"] = f"vit.embeddings.patch_embeddings.projection.{part}"
        found[f"encoder.norm.{part}"], found[f"readout.{part}"] = f"vit.layernorm.{part}", f"classifier.{part}"
        for i in range(layers):
            ours, layer = f"encoder.layers.{i}", f"vit.layers.{i}"
            found[f"{ours}.norm1.{part}"], found[f"{ours}.norm2.{part}"] = (
                f"{layer}.layernorm_before.{part}",
                f"{layer}.layernorm_after.{part}",
            )
            found[f"{ours}.ffn.up.{part}"], found[f"{ours}.ffn.down.{part}"] = (
                f"{layer}.mlp.fc1.{part}",
                f"{layer}.mlp.fc2.{part}",
            )
            found[f"{ours}.attention.out.{part}"] = f"{layer}.attention.o_proj.{part}"
    tensors = {name: theirs[other] for name, other in found.items()}
    for i in range(layers):
        for part in ("weight", "bias"):
            joined = [theirs[f"vit.layers.{i}.attention.{which}_proj.{part}"] for which in "qkv"]
            tensors[f"encoder.layers.{i}.attention.qkv.{part}"] = torch.cat(joined)
    return tensors


def test_the_vision_transformer_equals_hugging_face():
    config = HFViTConfig(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64, image_size=24, patch_size=8,
        num_channels=3, num_labels=5,
    )  # fmt: skip
    theirs = shaken(ViTForImageClassification(config)).eval()
    ours = classifier(ViTConfig(layers=3, width=16, heads=4, patch=8), Pixels(3, 24, 24), 5, "first").eval()
    load_weights(ours, vit_tensors(theirs.state_dict(), 3))
    pixels = torch.randn(2, 3, 24, 24)
    torch.testing.assert_close(logits(ours, pixels), theirs(pixels).logits, **CLOSE)


@pytest.mark.parametrize(
    ("config", "space", "message"),
    [
        (AlexNetConfig(), Pixels(3, 32, 32), "at least 63 x 63 pixels"),
        (ViTConfig(patch=16), Pixels(1, 28, 28), "patch = 16 does not divide images of 28 x 28"),
    ],
)
def test_images_that_do_not_fit_the_model_are_refused_when_it_is_built(config, space, message):
    with pytest.raises(ConfigError, match=message):
        config.build_encoder(space)


def test_a_vision_transformer_refuses_images_of_another_size():
    model = ViTConfig(layers=1, width=8, heads=2, patch=4).build_encoder(Pixels(1, 8, 8))
    with pytest.raises(DataError, match="expected images of 8 x 8 pixels, got 12 x 8"):
        model(Images(torch.zeros(1, 1, 12, 8)))


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (28, 28), (33, 7)])
def test_a_cnn_reads_images_of_any_size(size):
    model = classifier(CNNConfig(channels=(4, 8, 8)), Pixels(1, 28, 28), 3).eval()
    assert logits(model, torch.randn(2, 1, *size)).shape == (2, 3)
