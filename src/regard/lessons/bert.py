"""Lesson: BERT's masks, two segments, attention to both sides by hand, and a loss at the masked positions only."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import max_difference, trace_attention
from regard.lessons.engine.reading import Reading
from regard.lessons.engine.small_bert import (
    NAMES,
    SHARES,
    EncoderPass,
    draw_masks,
    encode,
    package_encoder,
    read_masked,
)
from regard.tasks.fill.masking import Masking

CLS, SEP, MASK = "[CLS]", "[SEP]", "[MASK]"
SPECIAL = (CLS, SEP, MASK)

INPUTS = (
    Input("text", "Let's make [MASK] chicken! [SEP] It [MASK] great with orange sauce",
          "two segments with masks; try lemon for orange, or plates for sauce"),
    Input("answers", ["orange", "tastes"], "the words that were masked", ("mask",)),
    Input("vocabulary",
          ["[CLS]", "[SEP]", "[MASK]", "let's", "make", "orange", "lemon", "chicken!", "it", "tastes", "looks", "great",
           "with", "sauce", "plates"],
          "all words", ("word",)),
    Input("share", 0.15, "share of the tokens that are predicted", bounds=(0.01, 1.0)),
    Input("seed", 24, "seed of the masks", bounds=(0, 1_000_000)),
    Input("n", 10_000, "tokens of a longer text, to count what becomes of them", bounds=(10, 100_000)),
    Input(
        "E",
        [[-0.5, -0.5, 0, 0.5], [0, -0.5, 0, 1.5], [-0.5, -0.5, 0.5, 0], [0, -1, 0, 1.5], [0, -0.5, 0.5, 0.5],
         [2, -1, -3.5, -1.5], [1, -2.5, 3, -3], [-0.5, 0, 0.5, 1], [-0.5, 0, -0.5, 0.5], [-4.5, 0.5, 1, 2],
         [-0.5, 4.5, -1, -0.5], [-1, -0.5, 0, -0.5], [-0.5, -0.5, 0, 0.5], [0, 1.5, 1, 0.5], [-0.5, -1, 0.5, 1]],
        "word embeddings; also the output layer", ("word", "width"),
    ),
    Input(
        "P",
        [[0.5, -0.5, -0.5, 0.5], [1, -1.5, -0.5, 0], [2, -1, -0.5, -0.5], [-1, 1.5, 0.5, -1.5], [0.5, -0.5, -1, 0.5],
         [0, -0.5, -1.5, 0], [0, 0, 0, 0.5], [1.5, -2, 0.5, 0], [1, 0, 1, -1.5], [0, 0, -0.5, 0.5],
         [1, 0.5, -0.5, -1], [-1, -1, 1.5, 0], [0, 0, 0, 0.5]],
        "position embeddings: as many as the longest text has tokens", ("place", "width"),
    ),
    Input("S", [[-0.5, 0, 0, 0], [-0.5, 0.5, -0.5, 0]], "segment embeddings", ("segment", "width")),
    Input("WQ", [[1.5, -1.5, 0, 0.5], [0, 0.5, 0.5, 0], [0, 0.5, 0.5, -1], [0.5, 0.5, 0.5, -0.5]], "query weights",
          ("out", "width"), "W_Q"),
    Input("WK", [[-2.0, 0, 1.5, 0.5], [0, -0.5, 0, -0.5], [0, -0.5, -1.5, -0.5], [0.5, 0, -0.5, 0.5]], "key weights",
          ("out", "width"), "W_K"),
    Input("WV", [[-0.5, 0.5, -0.5, 0], [-1, 0, 0, 0], [0, 1, 0, -0.5], [-1, 1, 0, 0]], "value weights",
          ("out", "width"), "W_V"),
    Input("WO", [[0.5, 1, 0.5, 0], [1, -0.5, 1, 0], [-1, -0.5, -1, -1], [0.5, 0, -1, 0]], "output weights",
          ("width", "out"), "W_O"),
    Input(
        "W1",
        [[0.5, -0.5, 0.5, 0.5], [-0.5, -0.5, 1, 1.5], [-0.5, 0.5, -0.5, 0.5], [0, 0, -0.5, 0.5], [0, -0.5, 0, 0.5],
         [0.5, 0, -1, 0], [-1.5, 0, 0, -0.5], [-1, 0.5, -0.5, 0]],
        "feed-forward weights", ("inner", "width"), "W_1",
    ),
    Input(
        "W2",
        [[0.5, 0, 0, 0, 0.5, 0.5, -0.5, -1], [0, -0.5, -0.5, 0.5, -0.5, 1, 0.5, -0.5],
         [0.5, 2, 0, 0.5, 0, -0.5, 1, 0], [-0.5, -0.5, 0.5, 0, -0.5, -0.5, -0.5, 0.5]],
        "and back", ("width", "inner"), "W_2",
    ),
    Input("WM", [[-0.5, 0, 0, 0.5], [2, -0.5, 0, -0.5], [0, 1, -1.5, 0], [0.5, 0, -1, -1]],
          "weights of the masked-LM head", ("out", "width"), "W_M"),
)  # fmt: skip


def compute(page: LessonBuilder) -> None:
    """Masks are drawn; then a post-norm layer of one head reads the masked text and predicts the masked words."""
    words, masks, ids, segments = _inputs(page)
    weights = {name: page.tensor(name) for name in NAMES}
    formula, causal = encode(weights, ids, segments), encode(weights, ids, segments, causal=True)
    _masking(page, words, masks)
    _segments(page, words, segments)
    _layer(page, formula, words)
    _both_sides(page, formula, causal, words, masks)
    _predictions(page, formula, causal, masks)
    _loss(page, weights, formula, words, masks)
    seen, logits = read_masked(package_encoder(weights), ids, segments)
    page.compare("the layer by its formulas, and the package's BERT: attention weights", formula.weights, seen, 1e-9)
    page.compare("the layer by its formulas, and the package's BERT: logits", formula.logits, logits, 1e-9)
    page.expect("the two masked words", ["orange", "tastes"], "best", 0)
    page.expect("weight of the first mask on orange, in the other segment", 0.9918, "on_orange", 5e-5)
    page.expect("loss at the two masks", 0.0038, "loss", 5e-5)


def _inputs(page: LessonBuilder) -> tuple[list[str], list[int], list[int], list[int]]:
    """Tokens with [CLS] and [SEP], positions of the masks, ids and segments; an error where inputs do not fit."""
    vocabulary, limit = page.data("vocabulary"), len(page.data("P"))
    words = [word if word in SPECIAL else word.lower() for word in [CLS, *page.words("text"), SEP]]
    unknown = [word for word in [*words, *page.data("answers"), *SPECIAL] if word not in vocabulary]
    if unknown:
        raise page.error(f'text: expected words of {", ".join(vocabulary)}, got "{unknown[0]}"')
    if words.count(SEP) != 2:
        raise page.error(f"text: expected one {SEP} between two segments, got {words.count(SEP) - 1}")
    if len(words) > limit:
        raise page.error(
            f"text: expected at most {limit - 2} words, since P has {limit} positions, {CLS} and {SEP} included; "
            f"got {len(words) - 2}"
        )
    masks, answers = [i for i, word in enumerate(words) if word == MASK], page.data("answers")
    if len(masks) != len(answers):
        raise page.error(f"answers: expected one word for each {MASK} of the text, {len(masks)}; got {len(answers)}")
    sizes = {name: page.tensor(name).shape for name in ("WQ", "WM", "S")}
    if sizes["WQ"][0] != sizes["WQ"][1]:
        raise page.error(f"WQ: expected as many rows as columns, since there is one head; got {sizes['WQ'][0]} rows")
    if sizes["S"][0] != 2:
        raise page.error(f"S: expected 2 rows, one for each segment, got {sizes['S'][0]}")
    middle = words.index(SEP)
    return words, masks, [vocabulary.index(word) for word in words], [int(i > middle) for i in range(len(words))]


def _masking(page: LessonBuilder, words: list[str], masks: list[int]) -> None:
    answers = iter(page.data("answers"))
    original = [next(answers) if i in masks else word for i, word in enumerate(words) if word not in (CLS, SEP)]
    known = [word for word in page.data("vocabulary") if word not in SPECIAL]
    drawn = draw_masks(len(original), page.data("seed"), page.data("share"), len(known))
    labels = {"token": original}
    page.step(
        "15 % of the tokens are predicted",
        "Each token of a text gets a random number; those with the smallest are predicted, 15 % of all. The default "
        "seed is one that draws the two words of the slide. In every epoch other words are drawn.",
        r"\text{count} = \max(1, \text{round}(\text{share} \cdot \text{tokens}))",
        "text answers share seed",
        value("order", drawn.order.tolist(), "token", r"\text{random}", labels),
        value("predicted", drawn.predicted.astype(int).tolist(), "token", r"\text{predicted}", labels),
        value("count", int(drawn.predicted.sum()), "", r"\text{count}"),
    )
    many = draw_masks(page.data("n"), page.data("seed"), page.data("share"), len(known))
    page.step(
        "Of these, 80 % become [MASK]",
        "10 % become a random word, and 10 % stay as they are. Later tasks have no [MASK] in their texts: since any "
        "word may be the wrong one, the encoder has to keep a good vector of every word, not only of masks.",
        rf"\text{{below }} {SHARES[0]}: \text{{[MASK]}} \quad \text{{below }} {sum(SHARES):.1f}: \text{{random word}}",
        "predicted text answers vocabulary share seed n",
        value("fate", drawn.fate.tolist(), "token", r"\text{second random}", labels),
        value("drawn", drawn.read(original, known), "token", r"\text{is read}", labels),
        value("outcomes", many.outcomes, "outcome", r"\text{predicted of n}",
              {"outcome": [MASK, "random word", "unchanged"]}),
    )  # fmt: skip
    page.compare("the outcomes are all tokens that are predicted", int(many.predicted.sum()), sum(many.outcomes), 0)
    vocabulary = page.data("vocabulary")
    masking = Masking(vocabulary.index(MASK), np.array([vocabulary.index(word) for word in known]), page.data("share"))
    row = masking.apply(np.array([vocabulary.index(word) for word in original]), page.data("seed"))
    package = [vocabulary[i] for i in row.ids.tolist()]
    page.compare("what is read, and the masking of the task fill", drawn.read(original, known), package, 0)


def _segments(page: LessonBuilder, words: list[str], segments: list[int]) -> None:
    page.step(
        "Two segments in one text",
        "[CLS] stands before a text: its vector is used to classify. [SEP] ends each of two segments, and a number "
        "says which one a token belongs to. A pair of texts is read at once, each word seeing both.",
        r"\text{[CLS]} \, a_1 \ldots a_m \, \text{[SEP]} \, b_1 \ldots b_n \, \text{[SEP]}",
        "text",
        value("segments", segments, "position", r"\text{segment}", {"position": words}),
    )


def _layer(page: LessonBuilder, formula: EncoderPass, words: list[str]) -> None:
    labels = {"position": words}
    page.step(
        "Word plus position plus segment",
        "One layer, one head, width 4, weights that are multiples of a half, found by training on four texts (orange "
        "or lemon, sauce or plates). Three rows are added for each token, and the sum is normalized.",
        r"x_t = \text{norm}(E_{w_t} + P_t + S_{s_t})",
        "text vocabulary segments E P S",
        value("x", _tidy(formula.x), "position width", labels=labels),
    )
    page.step(
        "Queries, keys and values",
        "As in every Transformer. BERT is post-norm: what is projected is already normalized.",
        r"Q = x W_Q^\top \quad K = x W_K^\top \quad V = x W_V^\top",
        "x WQ WK WV",
        value("Q", _tidy(formula.queries), "position out", labels=labels),
        value("K", _tidy(formula.keys), "position out", labels=labels),
        value("V", _tidy(formula.values), "position out", labels=labels),
    )


def _both_sides(
    page: LessonBuilder, formula: EncoderPass, causal: EncoderPass, words: list[str], masks: list[int]
) -> None:
    square, at = {"query": words, "key": words}, {"mask": [f"{MASK} {i + 1}" for i in range(len(masks))]}
    later = [float(formula.weights[m, m + 1 :].sum()) for m in masks]
    orange = words.index("orange") if "orange" in words else len(words) - 2
    page.step(
        "Attention to both sides",
        "No mask hides anything: every token attends to all others, also to later ones. The first [MASK] attends to "
        "the fruit of the second segment, the second one to the word before the end.",
        r"A = \softmax(\frac{Q K^\top}{\sqrt{d}})",
        "Q K",
        value("A", formula.weights, "query key", "A", square, "weights"),
        value("later", later, "mask", r"\text{weight on later words}", at),
        value("on_orange", formula.weights[masks[0], orange], "", r"\text{first mask on orange}"),
    )
    page.step(
        "What a causal mask would hide",
        "The same queries and keys with the mask of a GPT: a token sees itself and what came before. At the first "
        "[MASK] nothing has been said about the fruit yet. A GPT needs that mask, since each position predicts the "
        "next word; BERT predicts masked words, which are hidden already.",
        r"A' = \softmax(\frac{Q K^\top}{\sqrt{d}} + \log \text{mask})",
        "Q K",
        value("A_causal", causal.weights, "query key", "A'", square, "weights"),
        value("later_causal", [float(causal.weights[m, m + 1 :].sum()) for m in masks], "mask",
              r"\text{weight on later words}", at),
    )  # fmt: skip
    package = trace_attention(formula.queries[None], formula.keys[None], formula.values[None], "causal")["weights"][0]
    page.compare("the causal mask by the formula, and the package's attention", causal.weights, package, 1e-9)


def _predictions(page: LessonBuilder, formula: EncoderPass, causal: EncoderPass, masks: list[int]) -> None:
    vocabulary = page.data("vocabulary")
    labels = {"mask": [f"{MASK} {i + 1}" for i in range(len(masks))], "word": vocabulary}
    positions = {"position": [page["segments"].labels["position"][m] for m in masks]}
    page.step(
        "Residual sums and the feed-forward network",
        "Each sublayer's output is added to its input, and the sum is normalized; shown at the masks.",
        r"x' = \text{norm}(x + A V W_O^\top) \quad x'' = \text{norm}(x' + W_2 \, \text{GELU}(W_1 x'))",
        "x A V WO W1 W2",
        value("x_mid", formula.middle[masks], "position width", "x'", positions),
        value("x_out", formula.out[masks], "position width", "x''", positions),
    )
    page.step(
        "The masked-LM head",
        "A dense layer with GELU and a norm, then the product with every word vector, which is used a second time. The "
        "softmax gives the probabilities of the words at each mask.",
        r"p = \softmax(\text{norm}(\text{GELU}(W_M x'')) E^\top)",
        "x_out WM E vocabulary",
        value("p", formula.logits[masks].softmax(1), "mask word", "p", labels, "weights"),
        value("best", _best(formula.logits[masks], vocabulary), "mask", r"\text{best word}", {"mask": labels["mask"]}),
    )
    page.step(
        "The same with the causal mask",
        "The weights are the same, and so is everything before the first mask: without the later words the answer "
        "cannot depend on them. Change orange to lemon in the text, and these words stay what they are.",
        r"p' = \softmax(\text{norm}(\text{GELU}(W_M x'')) E^\top)",
        "x A_causal V WO W1 W2 WM E vocabulary answers",
        value("best_causal", _best(causal.logits[masks], vocabulary), "mask", r"\text{best word}",
              {"mask": labels["mask"]}),
        value("p_causal", [float(causal.logits[m].softmax(0)[vocabulary.index(word)])
                           for m, word in zip(masks, page.data("answers"), strict=True)],
              "mask", r"p' \text{ of the masked word}", {"mask": labels["mask"]}),
    )  # fmt: skip


def _loss(
    page: LessonBuilder, weights: dict[str, Tensor], formula: EncoderPass, words: list[str], masks: list[int]
) -> None:
    vocabulary = page.data("vocabulary")
    targets = torch.tensor([vocabulary.index(word) for word in page.data("answers")])
    labels = {"mask": [f"{MASK} {i + 1}" for i in range(len(masks))]}
    p = formula.logits[masks].softmax(1)
    each = -p[range(len(masks)), targets].log()
    gradient = torch.zeros_like(formula.logits)
    gradient[masks] = p / len(masks)
    gradient[masks, targets] -= 1 / len(masks)
    page.step(
        "The loss is taken at the masks only",
        "The mean of the negative log-probabilities of the masked words. All other positions have no target: the "
        "gradient of the loss with respect to their logits is 0. They learn as context of the masks.",
        r"L = -\frac{1}{\text{masks}} \sum_{m} \log p_{m, w_m}",
        "p answers vocabulary",
        value("each", each, "mask", r"-\log p", labels),
        value("loss", each.mean(), "", "L"),
        value("gradient", gradient.norm(dim=1), "position", r"\text{norm of } dL/d\text{logits}", {"position": words}),
    )
    logits = formula.logits.clone().requires_grad_()
    torch.nn.functional.cross_entropy(logits[masks], targets).backward()
    page.compare("the gradient by the formula, and by autograd", gradient, logits.grad, 1e-12)
    page.compare("positions without a mask have no gradient", 0.0, _largest_gradient(gradient, masks), 0)
    page.step(
        "The price: fewer targets",
        "A GPT learns from every position of a text, BERT from the masked ones: so it needs more passes over a text to "
        "see each word as a target.",
        r"\text{targets of BERT} \quad \text{targets of a GPT}",
        "text",
        value("bert_targets", len(masks), "", r"\text{BERT}"),
        value("gpt_targets", len(words) - 1, "", r"\text{GPT}"),
    )


def _best(logits: Tensor, vocabulary: list[str]) -> list[str]:
    return [vocabulary[i] for i in logits.argmax(1).tolist()]


def _largest_gradient(gradient: Tensor, masks: list[int]) -> float:
    """Largest gradient at a position that is no mask."""
    others = [i for i in range(len(gradient)) if i not in masks]
    return max_difference(gradient[others], torch.zeros_like(gradient[others]))


def _tidy(x: Tensor) -> Tensor:
    """Rounding errors around 0 are shown as 0."""
    return x.round(decimals=12) + 0.0


FIGURE = "x > Q > A; x > K > A; x > V > x_mid; A > x_mid > x_out > p > best; best > loss"
EXERCISES = (
    Exercise(
        "Of the ten tokens of the text, how many are predicted with a share of 0.5?",
        "count",
        {"share": 0.5},
        hint="half of ten",
    ),
    Exercise(
        "Which two words fill the masks of the lesson's text? Two words.",
        "best",
        hint="what sauce, and what does it do?",
    ),
)
READING = Reading(
    "Attention to both sides against the causal mask",
    ("masked language model", "bidirectional attention", "segment embedding", "pre-training and fine-tuning"),
    (
        "Devlin et al. 2019, BERT: pre-training of deep bidirectional transformers for language "
        "understanding, section 3.1",
    ),
)
