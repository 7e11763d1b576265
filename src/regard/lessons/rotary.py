"""Lesson: rotary positions: queries and keys are rotated, and only the difference of two positions matters."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import max_difference
from regard.lessons.engine.reading import Reading
from regard.lessons.positions import sinusoids
from regard.nn.rotary import Rotary, rotate, rotation

TURNS, GRID, REACH = 8, 8, 16
"""positions of the first table, of the heat maps, and largest difference of the curve"""
FAR = 512
"""largest distance of the curve over all pairs of a wide head"""

INPUTS = (
    Input("pair", [1.0, 0.0], "two numbers: a point in the plane", ("side",)),
    Input("angle", 0.5, "its angle per position, in radians", symbol=r"\theta", bounds=(-10, 10)),
    Input("q", [1.0, 0.5, -0.5, 1.0], "a query; its pairs are (1, 3) and (2, 4)", ("width",)),
    Input("k", [1.0, 0.5, 0.5, 1.0], "a key", ("width",)),
    Input("base", 100.0, "base of the angles; 10,000 in the paper, less here so that both pairs turn visibly",
          bounds=(1, 1_000_000)),
    Input("m", 5, "position of the query", bounds=(0, 10_000)),
    Input("n", 2, "position of the key", bounds=(0, 10_000)),
    Input("shifts", [0, 1, 7, 50], "both positions moved by as much", ("case",), bounds=(0, 10_000)),
    Input("wide", 128, "width of a head of a large model, base 10,000", symbol="d", bounds=(2, 1024)),
)  # fmt: skip


def compute(page: LessonBuilder) -> None:
    """One pair, then a query and a key of several pairs, then the same product at other positions."""
    q, k = page.tensors("q k")
    if len(q) % 2:
        raise page.error(f"q: expected an even count of numbers, since they are rotated in pairs; got {len(q)}")
    if page.data("wide") % 2:
        raise page.error(f"wide: expected an even number, since numbers are rotated in pairs; got {page.data('wide')}")
    if len(page.data("pair")) != 2:
        raise page.error(f"pair: expected 2 numbers, got {len(page.data('pair'))}")
    _turn(page)
    _rotate(page, q, k)
    _same_difference(page, q, k)
    _maps(page, q, k)
    _difference_curve(page, q, k)
    _frequencies(page, page.data("wide"))
    _checks(page, q, k)


def rotate_at(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """A vector at each of some positions, rotated by the package, one row per position.

    >>> rotate_at(torch.tensor([1.0, 0.0]).double(), torch.tensor([0]), 100.0).tolist()
    [[1.0, 0.0]]
    """
    angles = Rotary(len(x), base)(positions[None].double())
    rows = x.expand(len(positions), -1)[None, :, None]
    return rotate(rows, rotation(angles, x.dtype))[0, :, 0]


def paper_products(q: Tensor, k: Tensor, differences: Tensor, base: float) -> Tensor:
    """The product by the paper's complex numbers: the real part of the sum of q_i conj(k_i) e^(i (m - n) theta_i)."""
    half = len(q) // 2
    angles = base ** (-torch.arange(half, dtype=torch.float64) / half)
    one, other = torch.complex(q[:half], q[half:]), torch.complex(k[:half], k[half:])
    turns = torch.exp(1j * differences[:, None] * angles)
    return (one * other.conj() * turns).sum(1).real


def _turn(page: LessonBuilder) -> None:
    x, y = page.data("pair")
    angles = page.data("angle") * torch.arange(TURNS, dtype=torch.float64)
    moved = torch.stack([x * angles.cos() - y * angles.sin(), x * angles.sin() + y * angles.cos()], 1)
    columns = torch.cat([angles[:, None], moved, moved.norm(dim=1)[:, None]], 1)
    page.step(
        "A pair of numbers turns",
        "Su et al., 2021: no vector is added. Two numbers are a point in the plane, and the position turns it: by the "
        "angle at position 1, twice as far at position 2. Its length stays the same.",
        r"x' = x \cos t \theta - y \sin t \theta \quad y' = x \sin t \theta + y \cos t \theta",
        "pair angle",
        value("turned", columns, "t column", r"\text{turned}",
              {"t": [f"t = {t}" for t in range(TURNS)], "column": ["angle", "x'", "y'", "length"]}),
    )  # fmt: skip
    lengths = torch.full((TURNS,), math.hypot(x, y), dtype=torch.float64)
    page.compare("the length of the pair at every position", lengths, moved.norm(dim=1), 1e-9 * (1 + math.hypot(x, y)))


def _rotate(page: LessonBuilder, q: Tensor, k: Tensor) -> None:
    m, n, base, half = page.data("m"), page.data("n"), page.data("base"), len(q) // 2
    pairs = [f"pair {i + 1}" for i in range(half)]
    page.step(
        "Every pair has its own angle",
        "The first pair turns by 1 radian per position, each later one more slowly. Number "
        f"i is paired with number i + {half}, as in Llama; the paper pairs neighbors, which is the same in another "
        "order.",
        r"\theta_i = \text{base}^{-2i/d}",
        "q base",
        value("angles", Rotary(len(q), base)(torch.tensor([[1.0]]).double())[0, 0], "pair", r"\theta", {"pair": pairs}),
    )
    query, key = rotate_at(q, torch.tensor([m]), base)[0], rotate_at(k, torch.tensor([n]), base)[0]
    page.step(
        "A query and a key, each at its position",
        "Queries and keys are rotated after their projections, in every layer. Values are not rotated.",
        r"q' = R_m q \quad k' = R_n k",
        "q k m n base",
        value("q_turned", query, "width", "q'"),
        value("k_turned", key, "width", "k'"),
        value("plain", float(q @ k), "", r"q \cdot k"),
        value("product", float(query @ key), "", r"q' \cdot k'"),
    )


def _same_difference(page: LessonBuilder, q: Tensor, k: Tensor) -> None:
    m, n, base = page.data("m"), page.data("n"), page.data("base")
    shifts = torch.tensor(page.data("shifts"))
    rotary = (rotate_at(q, m + shifts, base) * rotate_at(k, n + shifts, base)).sum(1)
    waves = sinusoids(max(m, n) + int(shifts.max()) + 1, len(q))
    added = ((q + waves[m + shifts]) * (k + waves[n + shifts])).sum(1)
    rows = [
        [float(m + s), float(n + s), float(m - n), r, a]
        for s, r, a in zip(shifts.tolist(), rotary.tolist(), added.tolist())
    ]
    page.step(
        "The same difference, the same product",
        "Both positions are moved by the same number of places. The rotated product does not change: query and key "
        "turn by the same angle, and the angle between them stays. With added sinusoids it changes, because the sum "
        "also contains products of a word with a position.",
        r"(R_m q) \cdot (R_n k) = q \cdot R_{n-m} k",
        "q k m n base shifts",
        value("table", rows, "case column", r"\text{products}",
              {"case": [f"moved by {s}" for s in shifts.tolist()],
               "column": ["m", "n", "m - n", "rotary", "added sinusoids"]}),
        value("spread", float(rotary.max() - rotary.min()), "", r"\text{rotary: largest difference}"),
        value("spread_added", float(added.max() - added.min()), "", r"\text{added: largest difference}"),
    )  # fmt: skip
    size = float(q.norm() * k.norm()) + 1
    page.compare("rotary: the same product at all moved positions", 0.0, page.data("spread"), 1e-6 * size)


def _maps(page: LessonBuilder, q: Tensor, k: Tensor) -> None:
    places = torch.arange(GRID)
    waves = sinusoids(GRID, len(q))
    rotary = rotate_at(q, places, page.data("base")) @ rotate_at(k, places, page.data("base")).T
    labels = {axis: [str(t) for t in range(GRID)] for axis in ("query", "key")}
    page.step(
        "As pictures",
        "The same query and key at all pairs of positions. Rotary: every diagonal has one color, since it has one "
        "difference. Added sinusoids: the color changes along a diagonal.",
        r"(R_t q) \cdot (R_s k) \quad (q + P_t) \cdot (k + P_s)",
        "q k base",
        value("rotary", rotary, "query key", r"\text{rotary}", labels, "signed"),
        value("added", (q + waves) @ (k + waves).T, "query key", r"\text{added sinusoids}", labels, "signed"),
    )
    diagonals = [rotary.diagonal(offset) for offset in range(1 - GRID, GRID)]
    spread = max(float(one.max() - one.min()) for one in diagonals)
    page.compare("rotary: the spread along any diagonal", 0.0, spread, 1e-6 * (float(q.norm() * k.norm()) + 1))


def _difference_curve(page: LessonBuilder, q: Tensor, k: Tensor) -> None:
    differences = torch.arange(-REACH, REACH + 1)
    keys = rotate_at(k, differences * 0 + REACH, page.data("base"))
    products = (rotate_at(q, differences + REACH, page.data("base")) * keys).sum(1)
    page.step(
        "So the product is a function of the difference",
        f"For this query and key, from {REACH} places before to {REACH} places after. Weights that are learned decide "
        "where it is large: a head can attend to the previous word wherever it stands.",
        r"f(m - n) = (R_m q) \cdot (R_n k)",
        "q k base",
        value("curve", products, "difference", "f", {"difference": [str(int(d)) for d in differences]}, "line"),
    )
    expected = paper_products(q, k, differences.double(), page.data("base"))
    size = float(q.norm() * k.norm()) + 1
    page.compare("the paper's complex numbers and the package's rotation", expected, products, 1e-5 * size)


def _frequencies(page: LessonBuilder, width: int) -> None:
    angles = Rotary(width)(torch.tensor([[1.0]]).double())[0, 0]
    lengths = 2 * math.pi / angles
    distances = torch.arange(FAR + 1, dtype=torch.float64)
    decay = (distances[:, None] * angles).cos().mean(1)
    pairs = {"pair": [str(i + 1) for i in range(len(angles))]}
    page.step(
        "Frequencies over the dimensions",
        "Positions after which each pair is back where it began, with the paper's base of 10,000: the first tells "
        "neighbors apart, the last hardly moves over a whole text. They are the frequencies of the sinusoids.",
        r"\frac{2 \pi}{\theta_i} = 2 \pi \cdot 10000^{2i/d}",
        "wide",
        value("lengths", lengths, "pair", r"\text{positions}", pairs, "log"),
        value("shortest", float(lengths[0]), "", r"\text{shortest}"),
        value("longest", round(float(lengths[-1])), "", r"\text{longest}"),
    )
    page.step(
        "Far positions count less",
        "A query equal to its key, all pairs of the same length: the product, as a share of that at distance 0. The "
        "cosines of many frequencies cancel each other, the more the larger the distance.",
        r"\frac{2}{d} \sum_i \cos((m - n) \theta_i)",
        "wide",
        value("decay", decay, "distance", r"\text{share}", look="line"),
        value("at_64", float(decay[64]), "", r"\text{at a distance of 64}"),
    )
    waves = sinusoids(2, width)
    steps = torch.atan2(waves[1, 0::2], waves[1, 1::2])
    page.compare("angles per position, rotary and sinusoids", steps, angles, 1e-6)
    page.expect("the first pair is back after 2 pi positions", 6.2832, "shortest", 5e-5)


def _checks(page: LessonBuilder, q: Tensor, k: Tensor) -> None:
    m, n, base, half = page.data("m"), page.data("n"), page.data("base"), len(q) // 2
    angles = base ** (-torch.arange(half, dtype=torch.float64) / half)
    neighbors = [x.view(2, half).T.flatten() for x in (q, k)]  # the paper's order: pairs are neighbors
    found = []
    for x, position in zip(neighbors, (m, n)):
        cos, sin = (position * angles).cos(), (position * angles).sin()
        a, b = x[0::2], x[1::2]
        found.append(torch.stack([a * cos - b * sin, b * cos + a * sin], 1).flatten())
    size = float(q.norm() * k.norm()) + 1
    about = "the paper's order (pairs of neighbors) and this one: the product"
    page.compare(about, float(found[0] @ found[1]), page.data("product"), 1e-5 * size * max(m, n, 1))
    same = rotate_at(q, torch.tensor([m]), base)[0], rotate_at(k, torch.tensor([m]), base)[0]
    page.compare("at equal positions the product is the plain one", float(q @ k), float(same[0] @ same[1]), 1e-9 * size)
    page.compare("the length of the query is kept", 0.0, max_difference(same[0].norm(), q.norm()), 1e-9 * size)
    page.expect("the product at a difference of 3", 0.5928, "product", 5e-5)


FIGURE = (
    "q > q_turned > product; k > k_turned > product; m > q_turned; n > k_turned; base > angles > "
    "q_turned; angles > k_turned"
)
EXERCISES = (
    Exercise(
        "With m = 5 and n = 5, is the product that of the vectors without rotation? Give the difference of the two.",
        lambda lesson: lesson.value("product").data - lesson.value("plain").data,
        {"m": 5, "n": 5},
        hint="only the difference of the positions matters",
    ),
    Exercise(
        "The pair [1, 0] is rotated by 90 degrees, that is 1.5708: which pair is it then? Two numbers.",
        lambda lesson: [round(number, 3) + 0.0 for number in lesson.value("turned").data[1][1:3]],
        {"pair": [1, 0], "angle": 1.5708},
        hint="from the first axis to the second",
    ),
)
READING = Reading(
    "Rotary positions: only the difference of two positions matters",
    ("rotary position embedding (RoPE)", "relative position", "rotation matrix"),
    ("Su et al. 2021, RoFormer: enhanced transformer with rotary position embedding, section 3",),
)
