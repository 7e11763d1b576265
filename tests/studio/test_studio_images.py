"""Images in the studio: uploads are bounded and decoded safely, and the page shows the numbers of the recorded pass."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import regard
from browsing import LOOKS, axe_violations, fits, go, open_look, open_page, shows, until
from image_requests import data_url, send, tensor
from regard.data.images import load_image
from regard.studio.image_input import MAX_IMAGE_BYTES, image_gigabytes

NAMES = ("cnn", "vit", "resnet")


@pytest.fixture(scope="module")
def photo(image_runs):
    return (image_runs / "photos" / "green" / "2.png").read_bytes()


def test_a_trace_of_an_upload_has_the_pixels_and_the_label_of_the_model(image_server, image_runs, photo):
    response = send(image_server, "resnet", data_url(photo), name="holiday.png")
    assert response.status == 201, response.body
    trace, model = response.table, regard.load(image_runs / "runs" / "resnet")
    path = str(image_runs / "photos" / "green" / "2.png")
    assert (trace["text"], trace["answer"]) == ("holiday.png", model.predict_text(path))
    pixels = load_image(path, model.input_encoder.shape).pixels
    assert np.array_equal(tensor(image_server, trace, "pixels"), pixels.transpose(1, 2, 0))
    with model.record() as recording:
        model.predict_text(path)
    for name in (
        "encoder.stem.conv.filters",
        "encoder.stages.1.1.feature_map",
        "encoder.stem.running_variance",
        "logits",
    ):
        expected = {r.name: r for r in recording.condense().records}[name].data[0].numpy()
        assert np.array_equal(tensor(image_server, trace, name), expected)


def test_saliency_and_changes_are_computed_from_the_same_pixels(image_server, image_runs):
    trace = send(image_server, "vit", "digits#test/7").table
    assert trace["text"] == "digits#test/7"
    model = regard.load(image_runs / "runs" / "vit")
    expected = model.saliency("digits#test/7")
    found = image_server.get(f"/api/v1/traces/{trace['id']}/saliency").table
    assert found["kind"] == "pixels" and found["title"] == expected.title
    np.testing.assert_allclose(found["scores"], expected.scores, rtol=1e-5, atol=1e-7)
    path = f"/api/v1/traces/{trace['id']}/export?view=saliency&format="
    assert image_server.get(f"{path}svg").body.decode() == expected.svg()
    lines = image_server.get(f"{path}csv").body.decode().splitlines()
    assert lines[0] == "output,frame,row,column,gray" and len(lines) == 1 + 28 * 28
    assert float(lines[1 + 28 * 3 + 5].split(",")[4]) == pytest.approx(
        expected.scores[0, 0, 0, 3, 5], rel=1e-5, abs=1e-9
    )
    change = {"kind": "head", "tensor": "encoder.layers.1.attention.weights", "head": 2}
    changed = image_server.post(f"/api/v1/traces/{trace['id']}/fork", {"change": change}).table
    assert not tensor(image_server, changed, "encoder.layers.1.attention.weights")[2].any()
    assert np.array_equal(tensor(image_server, changed, "pixels"), tensor(image_server, trace, "pixels"))
    assert not np.array_equal(tensor(image_server, changed, "logits"), tensor(image_server, trace, "logits"))


def png_bomb(side):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("image", "status", "code", "message"),
    [
        (data_url(b"no image at all"), 422, "no-image", "a.png: this is no image; expected PNG"),
        (data_url(png_bomb(50_000)), 422, "no-image", "at most 100,000,000"),
        (data_url(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"), 422, "no-image", "this is no image"),
        ("data:image/png;base64,AAA", 422, "bad-request", "the base64 text is damaged"),
        ("/etc/hostname", 422, "bad-request", "expected a data URL"),
        ("data:image/png;base64," + "A" * (4 * (MAX_IMAGE_BYTES // 3) + 400), 413, "too-large", "at most 8 MiB"),
        ("A" * (2 * MAX_IMAGE_BYTES), 413, "too-large", "a request has at most"),
        (7, 422, "bad-request", "image: expected a data URL, or a list of data URLs"),
    ],
)
def test_bad_uploads_are_refused(image_server, image, status, code, message):
    response = send(image_server, "cnn", image, name="a.png")
    assert (response.status, response.error["code"]) == (status, code), response.error
    assert message in response.error["message"]


def test_a_path_is_never_read_and_each_model_gets_its_own_kind_of_input(image_server, image_runs, server):
    text = str(image_runs / "photos" / "green" / "2.png")
    refused = image_server.post("/api/v1/traces", {"model": image_server.models()["cnn"], "text": text})
    assert (refused.status, refused.error["message"]) == (422, "this model reads an image")
    refused = send(server, "transformer", "digits#test/7")
    assert (refused.status, refused.error["message"]) == (422, "this model reads a text, not an image")
    models = image_server.get("/api/v1/models").table["models"]
    assert all(model["image"] for model in models)
    assert not any(model["image"] for model in server.get("/api/v1/models").table["models"])
    large = server.post("/api/v1/tokenize", {"model": "x", "text": "a" * 70_000})
    assert (large.status, large.error["message"]) == (413, "a request has at most 65,536 bytes")


def test_the_size_of_a_recording_is_counted_before_it_is_made(image_runs):
    for name in NAMES:
        model = regard.load(image_runs / "runs" / name)
        with model.record() as recording:
            model.predict_text(str(image_runs / "photos" / "red" / "1.png"))
        records = [r for r in recording.records if r.name not in ("features", "logits")]
        expected = sum(r.data.numel() * r.data.element_size() for r in records) / 1e9
        assert image_gigabytes(model) == pytest.approx(expected)


@pytest.fixture
def page(browser, image_server):
    with open_page(browser, image_server.address) as page:
        yield page


def canvas_pixels(page, label):
    """The pixels of a canvas, as drawn."""
    return np.array(
        page.get_by_label(label, exact=True).first.evaluate(
            "(c) => Array.from(c.getContext('2d').getImageData(0, 0, c.width, c.height).data)"
        )
    ).reshape(-1, 4)


@pytest.mark.slow
def test_a_file_is_chosen_run_and_shown_with_its_labels(page, image_server, image_runs, tmp_path):
    image = Image.open(image_runs / "photos" / "green" / "2.png").resize((200, 90))
    image.save(tmp_path / "été 日.png")
    go(page, image_server, "#/")
    page.get_by_label("Model", exact=True).select_option(image_server.models()["resnet"])
    assert page.get_by_label("Sentence", exact=True).is_hidden()
    page.get_by_role("button", name="Run").click()
    assert "No image is chosen" in page.get_by_role("alert").inner_text()
    page.get_by_label("Image", exact=True).set_input_files(tmp_path / "été 日.png")
    until(page, "document.querySelector('.image-name').textContent === 'été 日.png'")
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector(".image-tab")
    model = regard.load(image_runs / "runs" / "resnet")
    best = model.classify(str(tmp_path / "été 日.png"), top=2)[0]
    rows = page.locator(".image-tab table.candidates").first.locator("tbody tr").all()
    assert [row.locator("th").inner_text() for row in rows] == [p.label for p in best]
    assert all(shows(row.locator("td").first.inner_text(), p.probability) for row, p in zip(rows, best))
    shown = canvas_pixels(page, "the image, 16 × 16 pixels, as the model reads them")
    read = load_image(str(tmp_path / "été 日.png"), model.input_encoder.shape).pixels
    assert np.array_equal(shown[:, :3], read.transpose(1, 2, 0).reshape(-1, 3))


@pytest.mark.slow
def test_the_page_of_a_cnn_shows_saliency_filters_maps_and_statistics(page, image_server, image_runs):
    trace = send(image_server, "cnn", "digits#test/7").table
    go(page, image_server, f"#/t/{trace['id']}")
    assert page.get_by_role("tab", name="Image").get_attribute("aria-selected") == "true"
    assert page.get_by_role("tab", name="Saliency").count() == 0
    page.wait_for_selector("[aria-label='saliency of 28 × 28 pixels']")
    expected = regard.load(image_runs / "runs" / "cnn").saliency("digits#test/7").per_pixel
    drawn = page.locator(".legend", has_text="smallest").first.inner_text()
    assert shows(drawn.split("largest ")[1], expected.max())
    assert page.get_by_label("filter 3", exact=True).count() == 1
    assert page.locator(".maps figure").count() == 4
    page.get_by_label("Layer", exact=True).select_option("encoder.stages.1.feature_map")
    until(page, "document.querySelectorAll('.maps figure').length === 8")
    assert "tensor=encoder.stages.1.feature_map" in page.evaluate("location.hash")
    page.get_by_label("Normalization").select_option("encoder.stages.1.convs.0")
    numbers = tensor(image_server, trace, "encoder.stages.1.convs.0.batch_variance")
    page.wait_for_selector("[aria-label='Statistics of encoder.stages.1.convs.0']")
    table = page.get_by_role("region", name="Statistics of encoder.stages.1.convs.0")
    cells = [row.locator("td").last.inner_text() for row in table.locator("tbody tr").all()]
    assert len(cells) == 8 and all(shows(a, b) for a, b in zip(cells, numbers))


@pytest.mark.slow
def test_the_page_of_a_vit_shows_patches_positions_rollout_and_heads(page, image_server, image_runs):
    trace = send(image_server, "vit", "digits#test/7").table
    go(page, image_server, f"#/t/{trace['id']}?tab=image")
    rollout = tensor(image_server, trace, "rollout")
    card = page.locator(".card", has_text="Attention over the image")
    assert shows(card.locator(".legend").inner_text().split("largest ")[1], rollout.max())
    assert card.locator("figure", has_text="head").count() == 4
    page.get_by_label("Layer of the heads").select_option(label="layer 0")
    weights = tensor(image_server, trace, "encoder.layers.0.attention.weights")
    until(page, "document.querySelector('.image-tab').textContent.includes('head 3, up to')")
    captions = [f.inner_text() for f in card.locator("figure", has_text="head").all()]
    assert all(shows(text.split("up to ")[1], weights[i, 0, 1:].max()) for i, text in enumerate(captions))
    # the brightest patch of the rollout is lit up fully, the others less
    lit = canvas_pixels(page, "rollout over the image").reshape(28, 28, 4)[..., :3].astype(float)
    image = tensor(image_server, trace, "pixels").astype(float)
    share = np.kron(rollout / rollout.max(), np.ones((7, 7)))[..., None]
    expected = image * (0.25 + 0.75 * share) * (1 - 0.45 * share) + np.array([255, 140, 0]) * 0.45 * share
    assert np.abs(lit - expected).max() <= 1
    assert page.get_by_label("4 × 4 patches").locator("canvas").count() == 16
    assert page.get_by_label("similarity of position embeddings").locator("canvas").count() == 16


@pytest.mark.slow
def test_an_example_digit_can_be_run_and_every_tab_opens(page, image_server):
    go(page, image_server, "#/")
    page.get_by_label("Model", exact=True).select_option(image_server.models()["vit"])
    page.get_by_role("button", name="Example digit").click()
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector(".image-tab")
    assert page.locator(".inspector h1").inner_text().startswith("digits#test/")
    for name in ("Image", "Scene", "Attention", "States", "Numbers"):
        page.get_by_role("tab", name=name).click()
        page.wait_for_selector(f"#tab-{name.lower()}[aria-selected='true']")
        until(page, "!document.querySelector('#panel').hasAttribute('aria-busy')")
        assert page.locator("#panel [role=alert]").count() == 0


@pytest.mark.slow
def test_the_page_of_a_caption_shows_where_each_word_looked(browser, caption_server):
    trace = send(caption_server, "caption", "shapes#test/3").table
    with open_page(browser, caption_server.address) as page:
        go(page, caption_server, f"#/t/{trace['id']}")
        page.wait_for_selector(".image-tab")
        weights = tensor(caption_server, trace, "decoder.cross.weights")
        weights = weights.mean(0) if weights.ndim == 3 else weights
        captions = page.locator(".card", has_text="Where each word looked").locator("figcaption").all()
        words = [token["label"] for token in trace["sequences"]["target"]]
        assert [caption.locator("bdi").inner_text() for caption in captions] == words
        for caption, row in zip(captions, weights, strict=True):
            assert shows(caption.inner_text().split("up to ")[1], row.max())
        assert page.get_by_text("Image and labels").count() == 0


@pytest.mark.slow
def test_a_page_without_a_server_shows_the_image_too(browser, image_server, tmp_path):
    trace = send(image_server, "vit", "digits#test/7").table
    file = image_server.get(f"/api/v1/traces/{trace['id']}/export?format=html&tab=image")
    (tmp_path / "trace.html").write_bytes(file.body)
    context, problems = browser.new_context(), []
    page = context.new_page()
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    try:
        page.goto((tmp_path / "trace.html").as_uri())
        page.wait_for_selector("[aria-label='saliency of 28 × 28 pixels']")
        assert page.get_by_label("rollout over the image").count() == 1
        assert page.get_by_role("tab", name="Image").get_attribute("aria-selected") == "true"
    finally:
        context.close()
    assert problems == []


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_the_image_tab_has_no_severe_violations_and_fits_the_screen(browser, image_server, axe, theme, size):
    violations = []
    with open_look(browser, theme, size) as page:
        for name in ("cnn", "vit"):
            go(page, image_server, f"#/t/{send(image_server, name, 'digits#test/7').table['id']}?tab=image")
            page.wait_for_selector("[aria-label='saliency of 28 × 28 pixels']")
            assert fits(page)
            violations += axe_violations(page, axe, name)
    assert violations == []


def test_uploads_of_every_kind_of_pixels_are_read_as_files_are(image_server, tmp_path):
    """16 bits, a palette with transparency, CMYK, a turned photograph, and one that is decoded at a fraction."""
    exif = Image.Exif()
    exif[0x0112] = 6
    gradient = np.arange(28 * 28).reshape(28, 28)
    images = {
        "a.png": (Image.fromarray((gradient * 80).astype(np.uint16)), {}),
        "b.png": (Image.fromarray((gradient % 256).astype(np.uint8)).convert("P"), {"transparency": 3}),
        "c.jpg": (Image.fromarray((gradient % 256).astype(np.uint8)).convert("CMYK"), {}),
        "d.png": (Image.fromarray((gradient // 4).astype(np.uint8)), {"exif": exif}),
        "e.jpg": (Image.fromarray((gradient // 4).astype(np.uint8)).resize((500, 300)), {"exif": exif}),
    }
    model = regard.load(image_server.studio.root / "cnn")
    for name, (image, options) in images.items():
        image.save(tmp_path / name, **options)
        trace = send(image_server, "cnn", data_url((tmp_path / name).read_bytes()), name=name).table
        expected = load_image(str(tmp_path / name), model.input_encoder.shape).pixels[0]
        assert np.array_equal(tensor(image_server, trace, "pixels")[..., 0], expected), name
        assert trace["answer"] == model.predict_text(str(tmp_path / name))
