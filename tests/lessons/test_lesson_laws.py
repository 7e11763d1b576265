"""Properties of every lesson: inputs can be changed, results follow, JSON holds it, it fits any terminal."""

import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from regard.lessons import LESSONS, lesson_plan
from regard.lessons.engine.exercises import format_solution, grade
from regard.lessons.engine.terminal import lesson_text

EDITS = {
    "neuron": {"x": [0, 0], "threshold": 1, "inhibitory": [1, 0]},
    "perceptron": {
        "points": [[0, 0], [0, 1], [1, 0], [2, 3]],
        "targets": [0, 1, 1, 1],
        "epochs": 3,
        "rate": 0.1,
        "seed": 8,
        "epoch": 1,
    },
    "xor": {"targets": [0, 1, 1, 1], "passes": 3, "units": 2, "epochs": 100, "rate": 2.0, "seed": 2, "epoch": 10},
    "tape": {"x": 2.0, "y": 0.1, "f": "tanh(x*y) + x", "p": 1},
    "mlp": {
        "x": [0, 1],
        "t": 0,
        "W": [[2, 1], [1, 1]],
        "b": [-1, -1.5],
        "v": [2, -1],
        "c": 0.5,
        "rate": 2,
    },
    "filters": {
        "word": "été",
        "image": [[0, 1, 2, 3], [3, 2, 1, 0], [0, 5, 5, 0], [7, 0, 0, 7]],
        "filter": "diagonal-up",
        "at": [4, 4],
        "color": [0, 1, 1],
    },
    "embedding": {
        "text": "été",
        "vocabulary": ["am", "a", "i", "thanks", "student", "<eos>"],
        "word": "thanks",
        "untrained": [1, 0, 0, 0, 0, 0],
        "trained": [0, 9, 0, 0, 0, 0],
        "king": [1, 0.198, -0.585, -0.074],
        "man": [1, -0.836, -0.294, 0.455],
        "woman": [1, 0.388, -0.831, 0.773],
        "queen": [-1, -1, -1, -1],
    },
    "padding": {
        "sentences": ["uno", "dos tres", "Nunca es tarde para aprender", "Que sera, sera"],
        "targets": ["one", "two three", "a", "b"],
        "row": 1,
        "seed": 5,
    },
    "rnn": {
        "U": [[1, 0], [0, 1], [1, 0]],
        "V": [[1, 1, 0], [0, 0, 1], [1, 0, 0]],
        "W": [[2, 0, 0]],
        "h": [1, 1, 0],
        "x": [2, 0],
        "b": [1, 0, 0],
        "f": "tanh",
        "b_o": [1],
        "g": "tanh",
    },
    "bptt": {
        "x": [[1, 0], [0, 1], [1, 2], [0, 0]],
        "y": [2, 2, 1, 2],
        "h": [1, 0],
        "U": [[1, -0.3], [0.2, 0.4]],
        "W": [[1, -0.2], [0.3, 0.5]],
        "b": [1, 0],
        "V": [[2, -1], [-0.5, 0.5]],
        "c": [1, 0.2],
        "weight": [2, 1],
        "window": 1,
    },
    "gradients": {
        "radius": 1.1,
        "length": 12,
        "radii": [0.3, 0.9, 1.1, 1.5],
        "inputs": 1.0,
        "biases": [0, 2, 4],
    },
    "lstm": {
        "U": [[1, 0]] * 8,
        "V": [[1, 0]] * 8,
        "b": [0] * 8,
        "h": [1, 0],
        "c": [1, 0],
        "x": [0, 1],
    },
    "gru": {"U": [[1, 0]] * 6, "V": [[1, 2]] * 6, "b": [1] * 6, "h": [1, 0], "x": [0, 1]},
    "bidirectional": {
        "first": "a bank of the river",
        "second": "the bank of the town",
        "word": "of",
        "seed": 2,
    },
    "seq2seq": {"sentence": "Que sera, sera", "scale": 0.5, "limit": 2},
    "bahdanau": {
        "H": [[1, 0], [0, 1], [-1, 1], [1, 1]],
        "s": [0, 1],
        "next": [1, 1],
        "W1": [[1, 0], [0, 1], [1, 1]],
        "W2": [[1, 0], [0, 1], [1, 1]],
        "v": [1, 0, 0],
    },
    "luong": {
        "H": [[1, 0], [0, 1], [-1, 1], [1, 1]],
        "h": [0, 1],
        "W": [[1, 0], [0, 1]],
        "Wa": [[1, 1, 1, 1], [0, 1, 0, 1]],
        "v": [1, 2],
        "sharpness": 4,
        "score": "dot",
        "Wc": [[1, 1, 1, 1], [0, 1, 0, 1]],
        "e": [1, 1],
    },
    "attention": {
        "X": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 1]],
        "y": [1, 0, 0],
        "WQ": [[1, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, -1]],
        "WK": [[2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        "WV": [[2, 0, 0, 0], [0, 1, 1, 0]],
        "products": [100, 90],
        "d": 16,
    },
    "evolution-of-attention": {
        "sentence": "elle mange une pomme",
        "H": [[1, 0], [0, 1], [-1, 1], [1, 1]],
        "s": [0, 1],
        "W1": [[1, 0], [0, 1], [1, 1]],
        "W2": [[1, 0], [0, 1], [1, 1]],
        "v": [1, 0, 0],
        "WQ": [[1, 0], [1, 1]],
        "WK": [[1, 0], [1, 1]],
        "WV": [[1, 0], [1, 1]],
    },
    "eight-heads": {
        "X": [[1, 0, 0, 1], [0, 1, 1, 0]],
        "heads": 4,
        "WQ": [[1, 0, 0, 0]] * 16,
        "WK": [[1, 1, 0, 0]] * 16,
        "WV": [[1, 0, 0, 1]] * 16,
        "WO": [[1] * 16] * 4,
        "products": [100, 90],
        "d": 16,
    },
    "kinds-of-attention": {
        "X": [[1, 0, 0], [0, 1, 0], [1, 1, 1]],
        "Y": [[0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 1, 1]],
        "WQ": [[1, 0, 1], [0, 1, 1]],
        "WK": [[1, 1, 0], [0, 1, 0]],
        "WV": [[1, 0, 1], [0, 1, 1]],
        "later": [0, 0, 9],
    },
    "positions": {
        "words": ["man", "bites", "dog"],
        "X": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
        "order": [2, 3, 1],
        "digits": 3,
        "places": 8,
        "wide": 7,
    },
    "transformer": {"sentence": "elle mange une pomme", "limit": 3, "shown": 2},
    "it": {"noun": "bus", "place": "bridge", "first": "slow", "second": "dark", "layers": 1, "seed": 3},
    "pronoun": {
        "first": "the cow does not cross the bridge because it is too slow",
        "second": "the cow does not cross the bridge because it is too dark",
        "word": "the",
        "layer": 1,
    },
    "batch-vectors": {"sentences": ["uno", "dos tres", "a b", "Que sera, sera"], "width": 2, "seed": 5},
    "recurrence": {
        "X": [[1, 0], [1, 1], [0, 0]],
        "U": [[1, 0], [0, 1]],
        "V": [[0, 1], [1, 0]],
        "b": [0, 1],
    },
    "linear-bptt": {
        "x": [[1, 1], [0, 1], [1, 0], [2, 1]],
        "y": [[0], [0], [2], [0]],
        "Whx": [[1, 0], [0, 1]],
        "Whh": [[1.5, 0], [0.5, 1]],
        "Wqh": [[0, 2]],
    },
    "encoder-decoder-code": {"sentence": "Donde hay humo, hay fuego", "max_length": 2},
    "word-by-word": {"sentence": "No soy estudiante", "other": "Soy orador"},
    "limits-of-rnns": {"length": 7, "layers": 3, "n": 4, "weight": 0.5},
    "limits-of-convolution": {"words": 6, "layers": 1, "kernel": 5, "distance": 7, "seed": 3},
    "soft-lookup": {
        "K": [[0, 1], [1, 0], [1, 1], [0, 0]],
        "V": [[1], [2], [3], [5]],
        "q": [1, 1],
        "sharpness": 1,
    },
    "add-and-norm": {
        "X": [[4, 3, 2, 1], [0, 0, 1, 0]],
        "W": [[1, 0, 0, 0]] * 4,
        "gain": [2, 1, 1, 1],
        "shift": [0, 1, 0, 0],
        "layers": 3,
    },
    "feed-forward": {
        "X": [[0, 1, 1], [1, 1, 0]],
        "W1": [[1, 1, 0]] * 6,
        "b1": [1, 0, 0, 0, 0, 0],
        "W2": [[1, 0, 0, 0, 0, 1]] * 3,
        "b2": [1, 2, 3],
        "d": 64,
        "d_ff": 100,
    },
    "output-layer": {
        "x": [0, 1, 0],
        "W": [[1, 0, 0], [0, 1, 0]] * 3,
        "vocabulary": ["am", "a", "i", "thanks", "student", "<eos>"],
        "target": "i",
        "temperature": 0.5,
        "d": 64,
        "words": 100,
    },
    "stack": {"sentence": "je suis étudiant", "layers": 1, "norm": "pre", "seed": 2},
    "translation-scores": {"direction": "en-fr", "against": "ConvS2S", "petaflops": 2.0},
    "training": {
        "vocabulary": ["am", "a", "i", "thanks", "student", "<eos>"],
        "source": "merci",
        "target": "thanks",
        "steps": 3,
        "rate": 0.001,
        "seed": 2,
    },
    "label-smoothing": {
        "vocabulary": ["<PAD>", "am", "a", "i", "thanks", "student", "<eos>"],
        "word": "i",
        "scores": [0, 1, 2, 3, 4, 5, 6],
        "smoothing": 0.3,
    },
    "noam": {"width": 256, "warmup": 100, "step": 9000, "steps": 5000, "widths": [1, 2, 3], "warmups": [1, 2, 3]},
    "beam-search": {"sentence": "elle mange une pomme", "beam": 2, "alpha": 1.0, "limit": 3},
    "bert": {
        "text": "It [MASK] great [SEP] with [MASK] sauce",
        "answers": ["lemon", "looks"],
        "vocabulary": [
            *("[CLS]", "[SEP]", "[MASK]", "let's", "make", "lemon", "orange", "chicken!", "it", "tastes", "looks"),
            *("great", "with", "sauce", "tea"),
        ],
        "share": 0.3,
        "seed": 3,
        "n": 500,
        "E": [[1, 0, 0, 0.5]] * 5 + [[0, 1, 0, -1]] * 10,
        "P": [[0, 0.5, 0, -1], [1, 0, 2, 0]] * 7,
        "S": [[0, 0, 0, 0], [1, 0, 0, 0]],
        "WQ": [[1, 0, 0, 0]] * 4,
        "WK": [[0, 1, 0, 0]] * 4,
        "WV": [[0, 0, 1, 0]] * 4,
        "WO": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 2], [0, 0, 1, 0]],
        "W1": [[1, 0, 0, 0], [0, 1, 0, 1]] * 4,
        "W2": [[1, 0] * 4, [0, 1] * 4, [0, 0] * 4, [1, 1] * 4],
        "WM": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 2]],
    },
    "gpt": {
        "text": "the dog sat",
        "vocabulary": ["the", "dog", "cat", "sat", "on", "mat", "rug", "."],
        "E": [
            [1, 0, 0, 0],
            [0, 1, 0, 0],
            [0, 0, 1, 0],
            [0, 0, 0, 1],
            [1, 1, 0, 0],
            [0, 1, 1, 0],
            [0, 0, 1, 1],
            [2, 0, 0, 1],
        ],
        "P": [[1, 0, 0, 0.5]] * 8,
        "WQ": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        "WK": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 2]],
        "WV": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 3]],
        "WO": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        "W1": [[1, 0, 0, -1]] * 16,
        "W2": [[0.5, 0] * 8] * 4,
        "n": 3,
    },
    "elmo": {
        "first": "boats line the bank",
        "second": "the bank trust cash of water",
        "word": "the",
        "vocabulary": [".", "boats", "clients", "line", "trust", "the", "bank", "of", "with", "cash", "water"],
        "E": [[1, 0.5]] * 5 + [[-0.5, 2]] * 6,
        "F1": [[0.5, 0, 0, 1, 0.5]] * 8,
        "F2": [[0, 1, 0, 0.5, 0]] * 8,
        "B1": [[-1, 0, 0.5, 0, 0.5]] * 8,
        "B2": [[0.5, -0.5, 0, 0, 1]] * 8,
        "O": [[0, 1], [1, 0]] * 5 + [[1, 1]],
        "w": [2, 0, -1],
        "gamma": 2,
    },
    "rotary": {
        "pair": [3, 4],
        "angle": -2,
        "q": [0, 1, 2, 3],
        "k": [1, 0, 0, 9],
        "base": 10000,
        "m": 900,
        "n": 0,
        "shifts": [5, 5000],
        "wide": 6,
    },
    "alexnet": {"size": 128, "classes": 10},
    "resnet": {
        "x": [1.0, 2.0, 3.0, 5.0],
        "gain": 2.0,
        "shift": 0.5,
        "h": [2.0, -1.0],
        "W1": [[1.0, 0.0], [0.5, 0.25]],
        "W2": [[0.0, 1.0], [0.5, -0.5]],
        "blocks": 5,
    },
    "vit": {"image": [[10 * i + j for j in range(8)] for i in range(8)], "patch": 2, "order": "same", "seed": 2},
    "sizes": {
        "show": "GPT-4",
        "layers": 48,
        "width": 1600,
        "vocabulary": 1000,
        "context": 1024,
        "tokens": 2.5,
        "exponents": [0, 21, 30],
    },
}
"""Another value for each input of each lesson."""
CHANGES = [(name, key) for name, edits in EDITS.items() for key in edits]


def results(lesson):
    return {value.name: value.data for step in lesson.steps for value in step.results}


def depends_on(lesson, name):
    """The results that depend on an input, directly or indirectly."""
    found = {name}
    for step in lesson.steps:
        if found & {value.name for value in step.operands}:
            found |= {value.name for value in step.results}
    return found - {name}


def test_there_is_an_edit_for_every_input_of_every_lesson():
    expected = {name: {one.name for one in lesson_plan(name).inputs} - {"model", "models"} for name in LESSONS}
    assert {name: set(edits) for name, edits in EDITS.items()} == expected


@pytest.mark.parametrize(("name", "key"), CHANGES)
def test_a_changed_input_changes_only_results_that_depend_on_it(name, key, compute_lesson):
    before, after = compute_lesson(name), compute_lesson(name, **{key: EDITS[name][key]})
    old, new = results(before), results(after)
    changed = {result for result in old.keys() & new.keys() if old[result] != new[result]}
    assert changed
    assert changed <= depends_on(before, key) | depends_on(after, key)
    assert key in after.changed_inputs


@pytest.mark.parametrize(("name", "key"), CHANGES)
def test_agreement_checks_hold_for_changed_inputs(name, key, compute_lesson):
    lesson = compute_lesson(name, **{key: EDITS[name][key]})
    assert [check for check in lesson.checks if check.kind == "agreement" and not check.holds] == []


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_survives_json(name, compute_lesson):
    table = compute_lesson(name).to_dict()
    assert json.loads(json.dumps(table, allow_nan=False)) == table


@pytest.mark.parametrize("width", [32, 40, 80, 120])
@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_fits_any_terminal_width(name, width, compute_lesson):
    lesson = compute_lesson(name)
    lines = lesson_text(lesson, width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert lines[0].startswith(lesson.title[:10])
    assert sum(line.startswith(f"{number}  ") for number, line in enumerate_steps(lines)) == len(lesson.steps)


def enumerate_steps(lines):
    number = 1
    for line in lines:
        yield number, line
        number += line.startswith(f"{number}  ")


@pytest.mark.parametrize("name", LESSONS)
def test_plain_text_has_no_escape_sequences_and_colors_change_no_word(name, compute_lesson):
    from rich.text import Text

    lesson = compute_lesson(name)
    plain, colored = lesson_text(lesson, 80), lesson_text(lesson, 80, "24-bit")
    assert "\x1b" not in plain
    assert "\x1b[" in colored
    if not any(value.look in ("weights", "arcs", "signed") for step in lesson.steps for value in step.results):
        assert [line.rstrip() for line in Text.from_ansi(colored).plain.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("name", LESSONS)
def test_every_step_has_a_title_operands_and_results(name, compute_lesson):
    for step in compute_lesson(name).steps:
        assert step.title and step.results
        assert step.operands, step.title


@pytest.mark.parametrize("name", LESSONS)
def test_every_lesson_has_terms_papers_a_figure_and_two_exercises_that_are_graded(name, compute_lesson):
    plan, lesson = lesson_plan(name), compute_lesson(name)
    assert plan.reading.terms and plan.reading.papers and plan.figure.edges
    assert set(plan.figure.nodes) & set(lesson.values)
    assert len(plan.exercises) >= 2
    for exercise in plan.exercises:
        solution = exercise.solution(compute_lesson(name, **exercise.changes))
        assert grade(format_solution(solution), solution, exercise.tolerance).right
        assert not grade("", solution, exercise.tolerance).right
        assert not grade("12345.678", solution, exercise.tolerance).right
        assert exercise.hint and exercise.prompt.endswith((".", "?"))


def test_the_source_of_a_lesson_is_an_item_of_the_concordance_that_names_it():
    rows = (Path(__file__).parents[2] / "docs" / "concordance.md").read_text(encoding="utf-8").splitlines()
    named = {(row.split("|")[1].strip(), name) for row in rows for name in LESSONS if f"`regard lesson {name}`" in row}
    assert {(lesson_plan(name).reading.source, name) for name in LESSONS} <= named


def test_layout_of_a_step(compute_lesson):
    assert lesson_text(compute_lesson("rnn"), 60, step=1) == (
        "One cell of a recurrent network\n"
        "\n"
        "1  The recurrent part\n"
        "   The previous hidden state is multiplied by V. The\n"
        "   lecture's V moves each number up by one position, the\n"
        "   first to the end.\n"
        "\n"
        "      V hₜ₋₁\n"
        "\n"
        "       ⎡0  1  0⎤\n"
        "   V = ⎢0  0  1⎥   hₜ₋₁ = [1  0  0]\n"
        "       ⎣1  0  0⎦\n"
        "   → V hₜ₋₁ = [0  0  1]\n"
    )


def test_two_heat_maps_are_side_by_side_where_there_is_room(compute_lesson):
    lesson = compute_lesson("evolution-of-attention")

    def shared_lines(width):
        lines = lesson_text(lesson, width).splitlines()
        return sum("→ rnnsearch =" in line and "→ transformer =" in line for line in lines)

    assert (shared_lines(100), shared_lines(60)) == (1, 0)


@pytest.mark.parametrize("word", ["\x1b[31mred", "a" * 300, "\u202eevil", "دانشجو", "学生"])
def test_no_input_text_can_emit_control_sequences_or_overflow_a_line(word, compute_lesson):
    for name, changes in (
        ("bidirectional", {"first": f"a {word} b", "second": f"a {word} c", "word": word}),
        ("padding", {"sentences": [f"{word} x", word, "a", "b"]}),
        ("embedding", {"text": word}),
        ("seq2seq", {"sentence": word}),
    ):
        output = lesson_text(compute_lesson(name, **changes), 80)
        assert "\x1b" not in output and "\u202e" not in output
        assert max(map(cell_len, output.splitlines())) <= 80
