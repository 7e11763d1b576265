"""Captions in the studio: an upload is captioned, its trace has the pixels, and no text is read as a path."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

import regard
from regard.data.shapes import make_scene


def send(server, run, **body):
    return server.post("/api/v1/traces", {"model": server.models()[run], **body})


def upload(scene):
    out = io.BytesIO()
    Image.fromarray(scene.render()).save(out, "PNG")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"


def test_an_upload_is_captioned_and_its_trace_has_the_pixels_and_the_attention(caption_server, caption_runs):
    response = send(caption_server, "caption", image=upload(make_scene(3, "test")), name="photo.png")
    assert response.status == 201, response.body
    trace = response.table
    model = regard.load(caption_runs / "runs" / "caption")
    assert trace["text"] == "photo.png"
    with model.record():  # untrained words are about equally probable: the same kernels must compute them
        assert trace["answer"] == model.caption("shapes#test/3")
    tensors = {tensor["name"]: tensor for tensor in trace["tensors"]}
    assert tensors["encoder.image"]["axes"] == ["channel", "row", "column"]
    pixels = caption_server.get(f"/api/v1/traces/{trace['id']}/tensors/pixels")
    found = np.frombuffer(pixels.body, "<i4").reshape([int(size) for size in pixels.headers["x-shape"].split(",")])
    assert np.array_equal(found, make_scene(3, "test").render())
    assert [word["token"] for word in trace["sequences"]["source"]][:2] == ["1,1", "1,2"]
    assert tensors["decoder.cross.weights"]["shape"][-1] == len(trace["sequences"]["source"]) == 256
    gradients = caption_server.get(f"/api/v1/traces/{trace['id']}/gradients")
    assert gradients.status == 200, gradients.body
    page = caption_server.get(f"/api/v1/traces/{trace['id']}/export?format=html")
    assert page.status == 200


def test_a_rendered_scene_is_named_instead_of_uploaded(caption_server):
    assert send(caption_server, "caption", image="shapes#test/3").table["text"] == "shapes#test/3"


def test_a_text_is_never_a_path_of_an_image(caption_server, tmp_path):
    Image.fromarray(make_scene(3, "test").render()).save(tmp_path / "secret.png")
    for text in (str(tmp_path / "secret.png"), "shapes#test/3"):
        response = send(caption_server, "caption", text=text)
        assert response.status == 422
        assert "reads an image" in response.body.decode()
    response = send(caption_server, "clips", text=str(tmp_path))
    assert response.status == 422
    assert "reads a clip" in response.body.decode()


def test_the_list_says_which_models_read_an_image_or_a_clip(caption_server):
    entries = {entry["name"]: entry for entry in caption_server.get("/api/v1/models").table["models"]}
    found = {name: (entry["image"], entry["clip"]) for name, entry in entries.items()}
    assert found == {"caption": (True, False), "clips": (True, True), "position": (True, True)}
