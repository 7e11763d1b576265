"""Lessons from attention to language models."""

from __future__ import annotations

from regard.lessons.contents.entry import ATTENTION, LANGUAGE, LEARNING, TRANSFORMER, LessonEntry

TRANSFORMER_LESSONS = {
    "soft-lookup": LessonEntry(
        ATTENTION,
        "Attention as a soft look-up",
        "A dictionary finds the entry whose key equals the query. Attention reads every entry, by how well its key "
        "fits: a look-up with a gradient.",
        "sharpness=32",
    ),
    "bahdanau": LessonEntry(
        ATTENTION,
        "Additive attention",
        "Before each word, the decoder compares its state with every encoder state by a small network. The softmax of "
        "these scores gives the weight of each encoder state in the context.",
        "s=0,1",
    ),
    "luong": LessonEntry(
        ATTENTION,
        "Four ways to score, and input feeding",
        "A score can be a dot product, a product through a matrix, a small network or a cosine. Context and state are "
        "then combined into the attention vector, which is an input of the next step.",
        "h=0,1",
    ),
    "attention": LessonEntry(
        ATTENTION,
        "Scaled dot-product attention",
        "Queries and keys are compared by a matrix product; divided by the square root of their width and passed "
        "through a softmax, the products are the weights of the values.",
        "y=1,0,0",
    ),
    "evolution-of-attention": LessonEntry(
        ATTENTION,
        "From a small network to a matrix product",
        "RNNsearch scores the encoder states with a small network. A Transformer computes keys, queries and values "
        "with matrices, and all scores are one matrix product. The same sentence through both.",
        'sentence="elle mange une pomme"',
        ("rnnsearch", "transformer"),
    ),
    "eight-heads": LessonEntry(
        TRANSFORMER,
        "Thinking Machines through eight heads",
        "Several small attention heads in parallel attend to different things; an output projection combines their "
        "results.",
        "heads=4",
    ),
    "kinds-of-attention": LessonEntry(
        TRANSFORMER,
        "Self, masked and cross",
        "The same formula three times: a sentence attends to itself, to its previous words only, or to another "
        "sentence. The differences are where queries and keys come from, and the mask.",
        'later="[0,0,0]"',
    ),
    "positions": LessonEntry(
        TRANSFORMER,
        "Positional encoding",
        "Attention alone ignores order. A vector per position adds it, summed with the word vector or concatenated to "
        "it: a counter whose digits are waves.",
        'order="[2,1,3]"',
    ),
    "add-and-norm": LessonEntry(
        TRANSFORMER,
        "Add and norm",
        "Every sublayer of a Transformer is added to its input, and the sum is brought to mean 0 and deviation 1: "
        "residual connection and layer normalization, number by number.",
        "gain=[2,2,2,2]",
    ),
    "feed-forward": LessonEntry(
        TRANSFORMER,
        "The feed-forward network",
        "Between two attentions each word is processed alone: up to a wider layer, ReLU, and down again. Most of a "
        "layer's parameters are here.",
        "d=1024 d_ff=4096",
    ),
    "output-layer": LessonEntry(
        TRANSFORMER,
        "From a vector to a word",
        "Linear and softmax: one score per word of the vocabulary, probabilities, the chosen word, and the gradient "
        "that training sends back.",
        "temperature=0.5",
    ),
    "stack": LessonEntry(
        TRANSFORMER,
        "The stack",
        "Layers on top of each other: x to z to r in each encoder, post-norm as in the paper, and keys and "
        "values of the "
        "last one for every decoder layer.",
        "norm=pre layers=4",
    ),
    "transformer": LessonEntry(
        TRANSFORMER,
        "An encoder and a decoder, step by step",
        "A trained Transformer reads a whole sentence at once and generates its translation word by word: the inputs, "
        "attention weights and predicted probabilities of each part.",
        'sentence="elle mange une pomme"',
        ("transformer",),
    ),
    "it": LessonEntry(
        TRANSFORMER,
        'What the word "it" refers to',
        "The animal did not cross the street because it was too tired, or too wide. An encoder that is trained to "
        "resolve the pronoun at its place attends from it to the right noun, also for pairs of words it never saw.",
        "noun=bus place=bridge",
    ),
    "pronoun": LessonEntry(
        TRANSFORMER,
        "Attention is not an explanation",
        "A translator of such sentences is just as correct, and the attention of its pronoun does not show why. Which "
        "words does it need? One after the other is isolated.",
        "layer=1",
        ("pronoun",),
    ),
    "training": LessonEntry(
        LEARNING,
        "One-hot targets, and a loss that falls",
        "The target is a row with a single 1; the model's prediction is a row of probabilities. Training moves the "
        "prediction toward the target: a small Transformer learns one sentence while you wait.",
        "steps=10",
    ),
    "label-smoothing": LessonEntry(
        LEARNING,
        "Label smoothing",
        "A small part of the target probability is moved from the correct word to all others: the loss then has a "
        "minimum at finite scores, and scores do not grow without bound.",
        "smoothing=0.3",
    ),
    "noam": LessonEntry(
        LEARNING,
        "A learning rate that rises and falls",
        "The learning rate schedule of the Transformer paper: linear warmup, then decay with the inverse square root "
        "of the step; wide models use smaller rates.",
        "width=1024",
    ),
    "beam-search": LessonEntry(
        LEARNING,
        "Several hypotheses at once",
        "A beam keeps the most probable partial sentences instead of one, and so finds sentences with an improbable "
        "start and a probable end. Every branch is one that this package's beam search explored.",
        "beam=2",
        ("transformer",),
    ),
    "translation-scores": LessonEntry(
        LEARNING,
        "Scores of the papers, and ours",
        "BLEU and training cost of the Transformer, of GNMT and of others as their papers give them, beside what this "
        "package reaches on its own corpora, which are others.",
        "direction=en-fr",
    ),
    "gpt": LessonEntry(
        LANGUAGE,
        "One block of a GPT, and its cache",
        "Radford et al., 2018 and 2019: a Transformer's decoder without an encoder predicts the next word. One block "
        "by hand, the causal mask, and why the keys and values of earlier words can be kept.",
        'text="the dog sat on the"',
    ),
    "bert": LessonEntry(
        LANGUAGE,
        "BERT reads to both sides",
        "Devlin et al., 2019: 15 % of the words are masked and predicted from all others. Two masks in two segments, "
        "one layer by hand, what a causal mask would hide, and a loss at the masked words only.",
        'text="Let\'s make [MASK] chicken! [SEP] It [MASK] great with lemon plates"',
    ),
    "elmo": LessonEntry(
        LANGUAGE,
        "ELMo: one word in two sentences",
        "Peters et al., 2018: two LSTM language models, one reading forwards and one backwards. The vector of bank is "
        "the same in both sentences, its states are not; a task mixes the layers.",
        "w=0,0,5 gamma=1",
    ),
    "rotary": LessonEntry(
        LANGUAGE,
        "Rotary positions",
        "Su et al., 2021: queries and keys are rotated by an angle that grows with their position. Their product then "
        "depends only on the difference of the two positions.",
        "m=105 n=102",
    ),
    "sizes": LessonEntry(
        LANGUAGE,
        "Sizes and costs, from GPT-1 to GPT-4",
        "Five models with architecture, parameters, data, date and training cost as quoted, and an open one. Where the "
        "shape is published the parameters can be counted exactly, and the cost follows from them and the tokens.",
        "layers=48 width=1600 context=1024",
    ),
}
