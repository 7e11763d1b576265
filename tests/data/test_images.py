"""Reading of images: kinds of pixels, orientation, references, and files that are no images or too large."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from regard.data.digits import digit_class, render_digit
from regard.data.images import ImageShape, fit_image, image_files, load_image, open_image, read_idx
from regard.errors import DataError, InputError

GRAY, COLOR = ImageShape(4, 4, 1), ImageShape(4, 4)
RED = (200, 30, 10)


def saved(path, mode, color, size=(4, 4), **options):
    Image.new(mode, size, color).save(path, **options)
    return str(path)


@pytest.mark.parametrize("ending", ["png", "bmp", "webp", "tiff"])
def test_the_pixels_of_a_file_are_read_exactly(tmp_path, ending):
    pixels = np.random.default_rng(1).integers(0, 256, (4, 4, 3), np.uint8)
    Image.fromarray(pixels).save(path := tmp_path / f"a.{ending}", **({"lossless": True} if ending == "webp" else {}))
    assert (load_image(str(path), COLOR).pixels == pixels.transpose(2, 0, 1)).all()


def test_a_color_image_becomes_gray_and_a_gray_one_color(tmp_path):
    assert load_image(saved(tmp_path / "a.png", "L", 90), COLOR).pixels.tolist() == np.full((3, 4, 4), 90).tolist()
    luminance = round(0.299 * 200 + 0.587 * 30 + 0.114 * 10)
    assert abs(load_image(saved(tmp_path / "b.png", "RGB", RED), GRAY).pixels.astype(int) - luminance).max() <= 1


def test_cmyk_and_sixteen_bits_are_converted(tmp_path):
    found = load_image(saved(tmp_path / "a.jpg", "CMYK", (0, 0, 0, 0), quality=100), COLOR).pixels
    assert found.min() >= 250  # no ink
    Image.fromarray(np.full((4, 4), 0x8000, np.uint16)).save(tmp_path / "b.png")
    assert (load_image(str(tmp_path / "b.png"), GRAY).pixels == 0x8000 // 257).all()


def test_transparency_is_drawn_over_white(tmp_path):
    assert (load_image(saved(tmp_path / "a.png", "RGBA", (0, 0, 0, 0)), COLOR).pixels == 255).all()
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, *RED])
    image.save(tmp_path / "b.png", transparency=1)
    assert (load_image(str(tmp_path / "b.png"), COLOR).pixels == 255).all()


def test_the_orientation_of_exif_is_honored(tmp_path):
    pixels = np.zeros((4, 4), np.uint8)
    pixels[0] = 255  # a bright first row
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees: the first row becomes the last column
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    assert load_image(str(tmp_path / "a.png"), GRAY).pixels[0, :, -1].tolist() == [255] * 4


def test_of_an_animated_image_the_first_frame_is_read_and_this_is_reported(tmp_path):
    frames = [Image.new("L", (4, 4), value) for value in (10, 200)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    found = load_image(str(tmp_path / "a.gif"), GRAY)
    assert found.is_animated and abs(found.pixels.astype(int) - 10).max() <= 1
    assert not load_image(saved(tmp_path / "b.gif", "L", 10), GRAY).is_animated


@pytest.mark.parametrize(("resize", "expected"), [("crop", [9, 9, 9, 9]), ("pad", [0, 9, 9, 0]), ("stretch", [9] * 4)])
def test_images_of_another_ratio_are_fitted(tmp_path, resize, expected):
    path = saved(tmp_path / "a.png", "L", 9, size=(16, 8))
    assert load_image(path, ImageShape(4, 4, 1, resize)).pixels[0, :, 1].tolist() == expected


def bomb(path, side):
    """A PNG whose header promises a huge image."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b""))
    return str(path)


@pytest.mark.parametrize("side", [12_000, 50_000])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(tmp_path, side):
    with pytest.raises(DataError, match="at most 100,000,000"):
        load_image(bomb(tmp_path / "a.png", side), COLOR)


def test_files_that_are_no_images_are_named(tmp_path):
    (tmp_path / "a.png").write_text("not an image")
    with pytest.raises(DataError, match=r"a\.png: this is no image"):
        load_image(str(tmp_path / "a.png"), COLOR)
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "b.jpg")
    (tmp_path / "b.jpg").write_bytes((tmp_path / "b.jpg").read_bytes()[:600])
    with pytest.raises(DataError, match=r"b\.jpg: the image cannot be read .*truncated"):
        load_image(str(tmp_path / "b.jpg"), COLOR)
    with pytest.raises(InputError, match=r"c\.png: there is no such image"):
        load_image(str(tmp_path / "c.png"), COLOR)
    (tmp_path / "d.png").mkdir()
    with pytest.raises((DataError, InputError), match=r"d\.png"):
        load_image(str(tmp_path / "d.png"), COLOR)


def idx(path, values):
    values = np.asarray(values, np.uint8)
    path.write_bytes(struct.pack(f">I{values.ndim}I", 0x800 + values.ndim, *values.shape) + values.tobytes())
    return path


def test_an_image_of_an_idx_file_is_named_by_its_number(tmp_path):
    images = np.arange(2 * 16).reshape(2, 4, 4)
    path = idx(tmp_path / "images", images)
    assert (load_image(f"{path}#1", GRAY).pixels == images[1]).all()
    assert read_idx(idx(tmp_path / "labels", [3, 7])).tolist() == [3, 7]
    with pytest.raises(DataError, match="the file has 2 images, counted from 0"):
        load_image(f"{path}#2", GRAY)
    with pytest.raises(DataError, match="labels, not images"):
        load_image(f"{tmp_path / 'labels'}#0", GRAY)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="expected an IDX file"):
        read_idx(path)


def test_rendered_digits_depend_on_number_and_split_alone():
    assert (load_image("digits#test/13", ImageShape(28, 28, 1)).pixels[0] == render_digit(13, "test")).all()
    assert digit_class(13) == 3
    assert (render_digit(13, "test") != render_digit(13, "train")).any()


def test_image_files_are_found_in_order_whatever_the_case_of_their_ending(tmp_path):
    for name in ("b/1.PNG", "a/2.jpeg", "a/.hidden.png", "a/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in image_files(tmp_path)] == ["2.jpeg", "1.PNG"]


def test_a_large_jpeg_is_decoded_at_a_fraction_of_its_size_and_looks_the_same(tmp_path):
    path, shape = tmp_path / "photo.jpg", ImageShape(32, 32)
    rows, columns = np.mgrid[0:600, 0:800]
    waves = [127 + 100 * np.sin(rows / 90) * np.cos(columns / (60 + 30 * i)) for i in range(3)]
    Image.fromarray(np.stack(waves, 2).astype(np.uint8)).save(path, quality=95)
    reduced, _ = open_image(path, 2 * 32)
    whole, _ = open_image(path)
    assert whole.size == (800, 600) and reduced.size == (100, 75)
    difference = np.abs(load_image(str(path), shape).pixels.astype(int) - fit_image(whole, shape).astype(int))
    assert difference.mean() < 1
