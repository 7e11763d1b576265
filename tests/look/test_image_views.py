"""Views of images: every number equals what torch or NumPy gives for the recorded pass, and drawings show it."""

import base64
import io
import json
import re

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from image_models import MODELS, train_image_model
from regard.data.images import load_image
from regard.errors import ConfigError, ModelError
from regard.look import Recording
from regard.look.rollout import attention_rollout
from regard.models.alexnet import AlexNetConfig
from regard.nn.convolution2d import ConvNorm
from regard.sequence import Images
from regard.spaces import Pixels
from regard.trace import record


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    root = tmp_path_factory.mktemp("image-models")
    return {name: train_image_model(name, root) for name in MODELS}, root


def reference(models, name):
    return str(models[1] / "photos" / "red" / "3.png") if name == "resnet" else "digits#test/7"


@pytest.fixture(scope="module")
def seen(models):
    """A recording per model, and the outputs of all its modules in the same pass."""
    found = {}
    for name, model in models[0].items():
        outputs = {}
        hooks = [
            module.register_forward_hook(lambda m, i, out, path=path, into=outputs: into.update({path: out}))
            for path, module in model.inference_module.named_modules()
        ]
        with model.record() as trace:
            model.predict_text(reference(models, name))
        for hook in hooks:
            hook.remove()
        found[name] = trace, outputs
    return found


CONVOLUTIONAL = ("cnn", "resnet")


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_feature_maps_equal_the_outputs_of_the_layers(seen, models, name):
    trace, outputs = seen[name]
    kinds = {"feature_map": "", "convolution": ".conv", "norm": ".norm"}
    compared = 0
    for kind, suffix in kinds.items():
        for layer in range(trace.maps(kind).layers):
            view = trace.maps(kind, layer, channels=range(trace.maps(kind, layer).count))
            base = view.name.removesuffix(f".{kind}")
            assert view.layer == layer and np.array_equal(view.maps, outputs[base + suffix][0].numpy())
            compared += 1
    assert compared == {"cnn": 2 + 4 + 4, "resnet": 4 + 7 + 7}[name]
    assert trace.maps(layer=-1).name == trace.maps(layer=trace.maps().layers - 1).name


def test_by_default_the_maps_that_vary_most_are_shown_in_order(seen):
    trace, _ = seen["resnet"]
    whole = trace.maps("norm", 3).maps
    view = trace.maps("norm", 3)
    assert view.channels == sorted(np.argsort(-whole.reshape(len(whole), -1).std(1))[:16].tolist())
    assert trace.maps("norm", 3, [2, 0]).channels == [2, 0]


FIRST = {"cnn": "encoder.stages.0.convs.0.conv", "resnet": "encoder.stem.conv", "vit": "encoder.embed"}


@pytest.mark.parametrize(("name", "layer"), FIRST.items())
def test_filters_equal_the_weights_of_the_first_layer(seen, models, name, layer):
    view = seen[name][0].filters()
    assert view.name == f"{layer}.filters"
    assert np.array_equal(view.filters, models[0][name].module.get_submodule(layer).weight.numpy())


def test_the_layers_of_alexnet_are_recorded_too():
    encoder = AlexNetConfig().build_encoder(Pixels(3, 64, 64)).eval()
    after = {}
    for i in (1, 2, 12):
        encoder.features[i].register_forward_hook(lambda m, inputs, out, i=i: after.update({i: out}))
    with record(encoder) as trace, torch.no_grad():
        encoder(Images(torch.randn(1, 3, 64, 64)))
    recording = Recording(trace)
    assert torch.equal(torch.from_numpy(recording.filters().filters), encoder.features[0].weight)
    for layer, i in ((0, 1), (1, 2), (7, 12)):
        view = recording.maps(layer=layer, channels=range(64))
        assert view.name == f"features.{i}.feature_map" and np.array_equal(view.maps, after[i][0, :64].numpy())


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_statistics_of_batch_normalization_equal_its_buffers_and_those_of_the_batch(seen, models, name):
    trace, outputs = seen[name]
    for layer in range(trace.batch_norm().layers):
        view = trace.batch_norm(layer=layer)
        norm = models[0][name].module.get_submodule(view.name).norm
        np.testing.assert_array_equal(view.statistics["running_mean"], norm.running_mean.double())
        np.testing.assert_array_equal(view.statistics["running_variance"], norm.running_var.double())
        conv = outputs[f"{view.name}.conv"].double().numpy()
        np.testing.assert_allclose(view.statistics["batch_mean"], conv.mean((0, 2, 3)), atol=1e-6)
        np.testing.assert_allclose(view.statistics["batch_variance"], conv.var((0, 2, 3)), rtol=1e-4, atol=1e-9)
        drawn = view.matrix.numbers
        np.testing.assert_allclose(drawn[2], norm.running_var[view.channels].double().sqrt())
        assert view.matrix.columns == tuple(map(str, view.channels))


def test_in_training_a_batch_is_normalized_by_the_recorded_statistics():
    layer = ConvNorm(2, 3, 3).train()
    with record(layer) as trace, torch.no_grad():
        layer(torch.randn(4, 2, 5, 5))
    found = {r.name: r.data for r in trace.records}
    mean, variance = (found[f"batch_{kind}"][:, None, None] for kind in ("mean", "variance"))
    expected = (found["convolution"] - mean) / (variance + layer.norm.eps).sqrt()
    torch.testing.assert_close(found["norm"], expected)


def test_recorded_filters_can_be_replaced_and_the_output_follows(models):
    model = models[0]["cnn"]
    with model.record(replace={"*.filters": torch.zeros_like}) as trace:
        model.predict_text("digits#test/7")
    assert not trace.find("encoder.stages.0.convs.0.convolution")[0].data.any()


def test_saliency_of_pixels_equals_autograd(models):
    for name, model in models[0].items():
        pixels = load_image(reference(models, name), model.input_encoder.shape).pixels
        view = model.saliency(reference(models, name))
        # the same float32 numbers: another rounding may fall on the other side of a ReLU
        inputs = model.input_encoder.collate([pixels.reshape(-1)]).pixels.requires_grad_()
        logits = model.module.readout(model.module(Images(inputs)))[0]
        best = int(logits.argmax())
        others = torch.cat([logits[:best], logits[best + 1 :]])
        (logits[best] - others.logsumexp(0)).backward()
        np.testing.assert_allclose(view.scores[0, 0], (inputs.grad * inputs)[0].detach().numpy(), rtol=1e-4, atol=1e-6)
        assert view.title == f"{model.labels.names[best]} {float(logits.detach().softmax(0)[best]):.2f}"
        assert np.array_equal(view.pixels[0], np.broadcast_to(pixels.transpose(1, 2, 0), view.pixels.shape[1:]))
        np.testing.assert_allclose(view.per_pixel[0, 0], view.scores[0, 0].sum(0))


def rollout_by_hand(weights):
    """Abnar and Zuidema 2020, with loops: A = (mean of heads + I) / 2, multiplied from the first layer to the last."""
    size = weights[0].shape[-1]
    total = [[float(i == j) for j in range(size)] for i in range(size)]
    for layer in weights:
        mixed = [
            [sum(float(h[i][j]) for h in layer) / len(layer) / 2 + (i == j) / 2 for j in range(size)]
            for i in range(size)
        ]
        total = [[sum(mixed[i][k] * total[k][j] for k in range(size)) for j in range(size)] for i in range(size)]
    return np.array(total)


def test_rollout_of_two_small_layers_is_the_product_that_the_paper_defines():
    first, second = np.array([[[1.0, 0.0], [0.5, 0.5]]]), np.array([[[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    # layer 1: [[1, 0], [.25, .75]]; layer 2: mean of heads [[.5, .5], [0, 1]], mixed [[.75, .25], [0, 1]]
    rollout = attention_rollout([torch.tensor(first), torch.tensor(second)])
    np.testing.assert_allclose(rollout, [[0.8125, 0.1875], [0.25, 0.75]])


@pytest.mark.parametrize("name", ["vit", "vit-mean"])
def test_rollout_over_the_image_equals_the_one_by_hand(seen, name):
    trace, _ = seen[name]
    layers = [r.data[0].numpy() for r in trace.find("encoder.layers.*.attention.weights")]
    for count in range(1, len(layers) + 1):
        expected = rollout_by_hand(layers[:count])
        expected = expected[0] if name == "vit" else expected.mean(0)
        view = trace.rollout(layer=count - 1)
        np.testing.assert_allclose(view.maps[0].ravel(), expected[1:], rtol=1e-5)
        assert view.notes == [f"{expected[0]:.4f} on [CLS]"]
        assert view.title.endswith("from [CLS]" if name == "vit" else "mean over all positions")
    np.testing.assert_array_equal(trace.rollout().maps, view.maps)


def test_attention_of_a_head_over_the_image_is_its_recorded_row(seen):
    trace, _ = seen["vit"]
    weights = trace.find("encoder.layers.1.attention.weights")[0].data[0].numpy()
    view = trace.image_attention(layer=1)
    assert view.labels == ["mean of 4 heads", "head 0", "head 1", "head 2", "head 3"]
    np.testing.assert_allclose(view.maps[0].ravel(), weights.mean(0)[0, 1:], rtol=1e-6)
    for head in range(4):
        np.testing.assert_array_equal(view.maps[1 + head].ravel(), weights[head, 0, 1:])
        np.testing.assert_array_equal(trace.image_attention(1, head).maps[0].ravel(), weights[head, 0, 1:])
    matrix = trace.attention(layer=1, head=2)
    assert matrix.rows[:3] == ["[CLS]", "0,0", "0,1"] and matrix.columns[-1] == "3,3"
    np.testing.assert_array_equal(matrix.weights, weights[2])


def test_similarity_of_positions_equals_torch(seen, models):
    view = seen["vit"][0].position_similarity()
    positions = models[0]["vit"].module.encoder.positions[0, 1:].double()
    expected = nn.functional.cosine_similarity(positions[:, None], positions[None], dim=-1)
    np.testing.assert_allclose(view.similarity.reshape(16, 16), expected, atol=1e-6)
    assert view.grid.across == 4 and len(view.grid.tiles) == 16


def test_patches_are_the_image_in_pieces(seen):
    pixels = load_image("digits#test/7", models_shape()).pixels[0]
    patches = seen["vit"][0].patches().pixels
    assert patches.shape == (4, 4, 7, 7, 3)
    again = patches[..., 0].transpose(0, 2, 1, 3).reshape(28, 28)
    assert np.array_equal(again, pixels)
    recorded = seen["vit"][0].find("encoder.patches")[0].data[0, 1, 2, 0]
    image = seen["vit"][0].find("encoder.image")[0].data[0, 0]
    assert torch.equal(recorded, image[7:14, 14:21])


def models_shape():
    from regard.data.images import ImageShape

    return ImageShape(28, 28, 1)


def svg_pictures(svg):
    """The pictures inside a drawing."""
    data = re.findall(r'href="data:image/png;base64,([^"]+)"', svg)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB")) for text in data]


def test_a_drawing_shows_the_numbers_as_colors(seen):
    view = seen["cnn"][0].maps(channels=[3])
    (picture,) = svg_pictures(view.svg())
    zoom = len(picture) // 28
    shares = view.maps[0] / view.max_abs
    expected = 255 + shares[..., None] * (np.array([0x6B, 0x3F, 0xA0]) - 255)
    assert np.abs(picture[zoom // 2 :: zoom, zoom // 2 :: zoom] - expected).max() <= 1
    colors = seen["resnet"][0].filters()
    first = svg_pictures(colors.svg())[0]
    zoom = len(first) // 3
    top = np.abs(colors.filters).max()
    expected = 127.5 + 127.5 * colors.filters[0].transpose(1, 2, 0) / top
    assert np.abs(first[::zoom, ::zoom] - expected).max() <= 1


VIEWS = {
    "cnn": ("filters", "maps", "batch_norm"),
    "resnet": ("filters", "maps", "batch_norm"),
    "vit": ("filters", "patches", "position_similarity", "rollout", "image_attention"),
    "vit-mean": ("rollout",),
}


@pytest.mark.parametrize(("name", "view"), [(name, view) for name, views in VIEWS.items() for view in views])
def test_every_view_draws_itself_and_a_saved_trace_gives_the_same(seen, tmp_path, name, view):
    trace, _ = seen[name]
    made = getattr(trace, view)()
    json.dumps(made.to_dict(), allow_nan=False)
    for color in ("none", "256", "24-bit"):
        lines = made.text(72, color).splitlines()
        assert len(lines) > 2
        assert max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in lines) <= 120
    assert made.svg().startswith("<svg") and "<script" not in made.svg()
    trace.save(tmp_path / "a.safetensors")
    for other in (Recording.load(tmp_path / "a.safetensors"), trace.condense()):
        assert getattr(other, view)().to_dict() == made.to_dict()


def test_a_condensed_trace_has_what_the_page_draws(seen):
    trace, _ = seen["vit"]
    found = {r.name: r for r in trace.condense().records}
    np.testing.assert_allclose(found["rollout"].data[0], trace.rollout().maps[0], rtol=1e-6)
    np.testing.assert_allclose(found["position_similarity"].data[0], trace.position_similarity().similarity, atol=1e-6)
    assert found["pixels"].axes == ("batch", "row", "column", "color") and found["pixels"].data.dtype == torch.int32
    assert "rollout" not in {r.name for r in seen["cnn"][0].condense().records}
    assert [t["label"] for t in trace.condense().header()["sequences"]["source"]][:2] == ["[CLS]", "0,0"]


def test_printing_a_recording_shows_the_maps_or_the_attention(seen):
    assert seen["cnn"][0].text(80, "none").startswith("encoder.stages.0.feature_map")
    assert seen["vit"][0].text(80, "none").startswith("attention of layer 2")
    assert "<svg" in seen["cnn"][0]._repr_html_()


@pytest.mark.parametrize(
    ("name", "act", "kind", "message"),
    [
        ("vit", lambda t: t.maps(), ModelError, "no feature maps were recorded; a Vision Transformer"),
        ("cnn", lambda t: t.rollout(), ModelError, "no patches were recorded; a Vision Transformer"),
        ("vit", lambda t: t.batch_norm(), ModelError, "no batch normalization was recorded; this model has none"),
        ("cnn", lambda t: t.attention(), ModelError, "has feature maps: maps"),
        ("cnn", lambda t: t.states(), ModelError, "a convolutional network has feature maps"),
        (
            "cnn",
            lambda t: t.maps(layer=2),
            ConfigError,
            "there is no layer 2; there are 0 encoder.stages.0.feature_map",
        ),
        ("cnn", lambda t: t.maps("x"), ConfigError, "no feature map is called 'x'; there are encoder.stages.0"),
        ("cnn", lambda t: t.maps(channels=[4]), ConfigError, "has the channels 0 to 3, got 4"),
        ("cnn", lambda t: t.maps(row=1), ConfigError, "row: 1 images were recorded"),
        ("vit", lambda t: t.rollout(layer=3), ConfigError, "layer: the layers are 0, 1, 2, got 3"),
        ("vit", lambda t: t.image_attention(head=4), ConfigError, "layer 2 has the heads 0 to 3, got 4"),
    ],
)
def test_what_a_recording_does_not_have_is_refused(seen, name, act, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        act(seen[name][0])


def test_a_recording_of_a_text_has_no_views_of_images():
    with record(nn.Identity()) as trace:
        pass
    empty = Recording(trace)
    for act in (empty.filters, empty.patches, empty.maps):
        with pytest.raises(ModelError, match="this model read no image"):
            act()
