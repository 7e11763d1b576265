"""Lessons from the artificial neuron to recurrent networks."""

from __future__ import annotations

from regard.lessons.contents.entry import IMAGES, NETWORKS, ORIGINS, WORDS, LessonEntry

NETWORK_LESSONS = {
    "neuron": LessonEntry(
        ORIGINS,
        "A neuron as a logical element",
        "McCulloch and Pitts, 1943: a neuron that fires if enough of its inputs are on computes AND, OR and NOT. XOR "
        "needs three of them, in two layers.",
        "threshold=1",
    ),
    "perceptron": LessonEntry(
        ORIGINS,
        "A neuron that learns",
        "Rosenblatt, 1957: each mistake moves the weights toward the right answer. A boundary line turns until it "
        "separates the two classes, if a line can.",
        "targets=0,1,1,1",
    ),
    "xor": LessonEntry(
        ORIGINS,
        "What one line cannot separate",
        "Minsky and Papert, 1969: a perceptron cannot learn XOR. With a hidden layer, and a gradient for every weight, "
        "a network can; the plane shows both.",
        "units=2",
    ),
    "tape": LessonEntry(
        ORIGINS,
        "Backpropagation on a tape",
        "Linnainmaa, 1970: one walk backwards over the instructions of a computation gives all derivatives of its "
        "result. He used it to bound rounding errors; autograd is the same walk.",
        'f="x*y + x"',
    ),
    "mlp": LessonEntry(
        ORIGINS,
        "Learning representations by back-propagating errors",
        "Rumelhart, Hinton and Williams, 1986: the error of the output is sent back through the weights to the hidden "
        "units. One update of a small network, number by number.",
        "x=0,1",
    ),
    "filters": LessonEntry(
        ORIGINS,
        "A filter slides over a picture",
        "An image is a table of numbers. Nine weights slide over it, nine products are summed at each place, and edges "
        "light up: what a convolutional network does in its first layer.",
        "filter=sobel-y",
    ),
    "alexnet": LessonEntry(
        IMAGES,
        "AlexNet, layer by layer",
        "Krizhevsky, Sutskever and Hinton, 2012: five convolutions and three dense layers, 61 million parameters, "
        "counted one layer after the other; and the contest that such networks have won since.",
        "classes=10",
    ),
    "resnet": LessonEntry(
        IMAGES,
        "A block that learns what to add",
        "He et al., 2015: batch normalization in training and in use, number by number; a shortcut around two layers, "
        "and why the gradient passes through many of them.",
        "blocks=20",
    ),
    "vit": LessonEntry(
        IMAGES,
        "Patches as words",
        "Dosovitskiy et al., 2020: an image is cut into patches, which are read like the words of a sentence. Without "
        "positions it would be a set of patches.",
        "patch=2",
    ),
    "embedding": LessonEntry(
        WORDS,
        "Words as numbers",
        "A text is bytes, a word is an index, an index is a one-hot vector, and a one-hot vector selects a row of an "
        "embedding table: the word's vector. Such vectors can be added and subtracted.",
        "word=thanks",
    ),
    "padding": LessonEntry(
        WORDS,
        "Four proverbs, one batch",
        "Sentences of unequal length become one rectangular tensor, padded with <PAD>. A correct model masks the "
        "padding: a sentence gives the same numbers alone as in a batch with longer ones.",
        "row=1",
    ),
    "batch-vectors": LessonEntry(
        WORDS,
        "A batch as vectors",
        "The padded batch becomes a tensor of three axes: <PAD> is a vector of zeros, and a word that comes twice has "
        "the same vector twice.",
        "width=2",
    ),
    "recurrence": LessonEntry(
        NETWORKS,
        "With and without a memory",
        "The same inputs through a feed-forward and a recurrent network: one sees each input for itself, the other "
        "all inputs so far.",
        "V=[[0,0],[0,0]]",
    ),
    "rnn": LessonEntry(
        NETWORKS,
        "One cell of a recurrent network",
        "A recurrent cell adds the transformed previous hidden state to the transformed input and applies an "
        "activation function: the result is the new hidden state.",
        "x=2,0",
    ),
    "bptt": LessonEntry(
        NETWORKS,
        "Backpropagation through time, written out",
        "The gradient of a recurrent network is a sum over time, because the same weights are used at every step. "
        "Computed in two ways: by the formula for each weight, and by the recursion that unrolls them.",
        "window=1",
    ),
    "linear-bptt": LessonEntry(
        NETWORKS,
        "Backpropagation through time without an activation",
        "A linear recurrent network whose loss is a mean over T steps: every gradient has its 1/T, and the gradient of "
        "a state is a sum of matrix powers.",
        "Whh=[[1.2,0],[0,1.2]]",
    ),
    "gradients": LessonEntry(
        NETWORKS,
        "Why gradients vanish or explode",
        "From one step to the previous one, a gradient is multiplied by the same matrix: with distance it shrinks or "
        "grows like a power. Gates and attention provide another path.",
        "radius=1.1",
    ),
    "lstm": LessonEntry(
        NETWORKS,
        "An LSTM cell, gate by gate",
        "The cell state is updated by addition, not by a matrix. Three gates between 0 and 1 control what is written, "
        "what is kept and what is output.",
        "x=0,1",
    ),
    "gru": LessonEntry(
        NETWORKS,
        "A GRU cell, gate by gate",
        "Two gates and no separate cell state: the update gate controls how much of the old state is kept, the reset "
        "gate how much of it the candidate may use. The paper and today's libraries apply the reset gate at different "
        "points.",
        "h=1,0",
    ),
    "bidirectional": LessonEntry(
        NETWORKS,
        "The same word, another context",
        "Read from left to right, a word's state depends only on the words before it. Read in both directions, it also "
        "depends on the words after it.",
        'second="the bank of the town"',
    ),
    "seq2seq": LessonEntry(
        NETWORKS,
        "Through one vector",
        "An encoder reads a sentence and passes on its last hidden state; a decoder generates word after word from it, "
        "until <EOS>. All information about the sentence must fit into that state.",
        'sentence="Que sera, sera"',
    ),
    "encoder-decoder-code": LessonEntry(
        NETWORKS,
        "Two listings and what they do",
        "An EncoderRNN and an AutoRegressiveDecoder in a few lines each: every line beside what it does, and the "
        "tensors that both return.",
        "max_length=2",
    ),
    "word-by-word": LessonEntry(
        NETWORKS,
        "Soy orador MadPy",
        "A sentence is read word by word: the state after each word, what each word changes, and the translation that "
        "comes out of the last state.",
        'sentence="No soy estudiante"',
    ),
    "limits-of-rnns": LessonEntry(
        NETWORKS,
        "Limits of recurrent networks",
        "One step waits for the previous one, and all that was read must fit into one state: time against length and "
        "lost context, measured, and what theory says of the power of recurrent networks.",
        "n=40",
    ),
    "limits-of-convolution": LessonEntry(
        NETWORKS,
        "Limits of convolution",
        "A filter sees a few neighbors. Layers widen its view step by step, the output is as long as the input, and "
        "what lies outside has no influence at all.",
        "layers=4",
    ),
}
