"""Clips in the studio: an animation or several frames are read, and the page shows every frame with its numbers."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import regard
from browsing import SIZES, axe_violations, go, open_page, shows
from image_requests import data_url, send, tensor
from regard.data.moving_shapes import FRAMES, make_clip


def frame_urls(number):
    urls = []
    for frame in make_clip(number, "test").render():
        out = io.BytesIO()
        Image.fromarray(frame).save(out, "PNG")
        urls.append(data_url(out.getvalue()))
    return urls


def animation(number, ending="webp", **options):
    images, out = [Image.fromarray(frame) for frame in make_clip(number, "test").render()], io.BytesIO()
    images[0].save(out, ending, save_all=True, append_images=images[1:], duration=100, **options)
    return out.getvalue()


def test_an_animation_its_frames_and_the_rendered_clip_give_the_same_trace(caption_server, caption_runs):
    sent = (data_url(animation(3, lossless=True), "image/webp"), frame_urls(3), "clips#test/3")
    for run in ("clips", "position"):
        traces = [send(caption_server, run, image, name="moving").table for image in sent]
        model = regard.load(caption_runs / "runs" / run)
        assert {trace["answer"] for trace in traces} == {model.predict_text("clips#test/3")}
        assert [trace["text"] for trace in traces] == ["moving", "moving", "clips#test/3"]
        for trace in traces:
            assert np.array_equal(tensor(caption_server, trace, "pixels"), make_clip(3, "test").render())
        assert [word["token"] for word in traces[0]["sequences"]["source"]] == [f"frame {i + 1}" for i in range(FRAMES)]
        with model.record() as recording:
            model.predict_text("clips#test/3")
        maps = recording.find("encoder.cnn.stages.1.feature_map")[0].data.numpy()
        np.testing.assert_array_equal(tensor(caption_server, traces[0], "encoder.cnn.stages.1.feature_map"), maps)
        expected = model.saliency("clips#test/3")
        path = f"/api/v1/traces/{traces[1]['id']}"
        found = caption_server.get(f"{path}/saliency").table
        np.testing.assert_allclose(found["scores"], expected.scores, rtol=1e-4, atol=1e-7)
        lines = caption_server.get(f"{path}/export?view=saliency&format=csv").body.decode().splitlines()
        assert len(lines) == 1 + expected.per_pixel.size
        assert caption_server.get(f"{path}/export?format=html&tab=image").status == 200


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (data_url(b"only a text"), "this is no image"),
        (frame_urls(3)[0], "1 frame; a clip needs at least two"),
        (frame_urls(3)[:1], "1 frame; a clip needs at least two"),
        ([frame_urls(3)[0], data_url(b"only a text")], "this is no image"),
        ([], "expected 1 to 256 frames, got 0"),
        (["x"] * 257, "expected 1 to 256 frames, got 257"),
        ([3], "expected a data URL, or a list of data URLs"),
        ("/etc/passwd", "expected a data URL"),
        (data_url(animation(3, "gif")[:2000]), "truncated or damaged"),
    ],
)
def test_clips_that_cannot_be_read_are_refused(caption_server, image, message):
    response = send(caption_server, "clips", image, name="moving")
    assert response.status == 422
    assert message in response.body.decode()
    assert send(caption_server, "caption", frame_urls(3)).status == 422


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_the_page_shows_every_frame_with_maps_saliency_and_states(browser, caption_server, axe, size, tmp_path):
    width, height = SIZES[size]
    for i, frame in enumerate(make_clip(3, "test").render()):
        Image.fromarray(frame).save(tmp_path / f"{i + 8}.png")  # 10.png comes after 9.png
    with open_page(browser, caption_server.address) as page:
        page.set_viewport_size({"width": width, "height": height})
        go(page, caption_server, "#/")
        page.get_by_label("Model", exact=True).select_option(label="position")
        page.get_by_label("Clip", exact=True).set_input_files(sorted(tmp_path.iterdir()))
        page.get_by_role("button", name="Run").click()
        page.wait_for_selector("[aria-label='y, frame 6']")
        trace = caption_server.get(f"/api/v1/traces/{page.url.split('/t/')[1].split('?')[0]}").table
        assert np.array_equal(tensor(caption_server, trace, "pixels"), make_clip(3, "test").render())
        numbers = page.get_by_role("table", name="Predicted numbers").locator("td").all_inner_texts()
        assert all(map(shows, numbers, tensor(caption_server, trace, "prediction")))
        for label in ("frame 6", "map 3, frame 6", "after frame 6", "x, frame 1"):
            assert page.get_by_label(label, exact=True).count() >= 1
        assert page.get_by_role("tab", name="Gradients").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe_violations(page, axe, size) == []
