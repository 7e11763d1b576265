"""Rendered shapes: scenes match their captions and boxes, splits share nothing, and some combinations are unseen."""

from __future__ import annotations

import numpy as np
import pytest

from regard.data.images import ImageShape, load_image
from regard.data.shapes import COLORS, RELATIONS, SHAPES, SIZE, SPLITS, UNSEEN, UNSEEN_PAIRS, make_scene

SCENES = {split: [make_scene(i, split) for i in range(400)] for split in SPLITS}


@pytest.mark.parametrize("split", SPLITS)
def test_every_shape_is_inside_the_picture_and_stands_in_the_relation_that_the_caption_says(split):
    for scene in SCENES[split]:
        (left, top, right, bottom), (left2, top2, right2, bottom2) = scene.first.box, scene.second.box
        assert min(left, top, left2, top2) >= 0
        assert max(right, bottom, right2, bottom2) <= SIZE
        holds = {
            "above": bottom <= top2,
            "below": top >= bottom2,
            "left of": right <= left2,
            "right of": left >= right2,
        }
        assert holds[scene.relation], scene


def test_both_captions_tell_the_same_scene():
    for scene in SCENES["train"]:
        one, other = scene.captions
        assert one == f"{scene.first.noun_phrase} {scene.relation} {scene.second.noun_phrase}"
        assert other == f"{scene.second.noun_phrase} {RELATIONS[scene.relation]} {scene.first.noun_phrase}"
        assert one != other


def test_the_box_of_a_shape_holds_its_color_and_the_rest_of_the_picture_does_not():
    for scene in SCENES["test"][:100]:
        pixels = scene.render().astype(int)
        for one in (scene.first, scene.second):
            near = (np.abs(pixels - COLORS[one.color]).max(-1) < 40).astype(float)
            left, top, right, bottom = (round(edge) for edge in one.box)
            inside = near[max(0, top - 1) : bottom + 1, max(0, left - 1) : right + 1].sum()
            if scene.first.color != scene.second.color:
                assert inside / near.sum() > 0.95
            assert inside > 15


def pairs(scene):
    return {(one.color, one.shape) for one in (scene.first, scene.second)}


def triples(scene):
    return {
        (scene.first.color, scene.first.shape, scene.relation),
        (scene.second.color, scene.second.shape, RELATIONS[scene.relation]),
    }


def test_unseen_combinations_are_in_every_scene_of_their_split_and_in_no_other():
    for split in SPLITS:
        assert {bool(pairs(scene) & UNSEEN_PAIRS) for scene in SCENES[split]} == {split == "unseen-pairs"}
        assert {bool(triples(scene) & UNSEEN) for scene in SCENES[split]} == {split == "unseen"}


def test_each_part_of_an_unseen_combination_is_seen_with_every_other_part():
    train = [make_scene(i, "train") for i in range(3000)]
    seen, apart = set().union(*map(pairs, train)), set().union(*map(triples, train))
    assert len(seen) == len(COLORS) * len(SHAPES) - len(UNSEEN_PAIRS)
    for color, shape, relation in UNSEEN:
        assert (color, shape) in seen
        assert any(found[0] == color and found[2] == relation for found in apart)
        assert any(found[1] == shape and found[2] == relation for found in apart)
    assert {color for color, _ in UNSEEN_PAIRS} == set(COLORS)
    assert {relation for _, _, relation in UNSEEN} == set(RELATIONS)


def test_a_scene_is_a_function_of_its_number_and_split():
    assert make_scene(3, "train") == make_scene(3, "train")
    assert (make_scene(3, "train").render() == make_scene(3, "train").render()).all()
    drawn = {scene.render().tobytes() for split in SPLITS for scene in SCENES[split][:50]}
    assert len(drawn) == 50 * len(SPLITS)


def test_relations_colors_and_shapes_are_about_equally_frequent():
    for names, of in ((RELATIONS, lambda s: s.relation), (COLORS, lambda s: s.first.color)):
        counts = [sum(of(scene) == name for scene in SCENES["train"]) for name in names]
        assert min(counts) > 0.6 * 400 / len(names)


def test_a_reference_names_a_scene():
    image = load_image("shapes#unseen/5", ImageShape(32, 32))
    assert (image.pixels == make_scene(5, "unseen").render().transpose(2, 0, 1)).all()
