"""Formulas are written once, in a small part of TeX, and read twice: as a line of text, and as MathML for browsers.

What is understood: names, numbers, signs, _ and ^, braces, \\frac \\sqrt \\bar \\tilde \\hat \\text, Greek letters,
named functions such as \\tanh, and the signs of SIGNS.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from html import escape

WIDE, THIN = "\u2003", "\u2009"
"""the spaces between two formulas on a line, and behind a function"""
SIGNS = {
    "sum": "Σ",
    "prod": "Π",
    "partial": "∂",
    "nabla": "∇",
    "cdot": "·",
    "times": "×",
    "odot": "∘",
    "top": "⊤",
    "le": "≤",
    "ge": "≥",
    "ne": "≠",
    "to": "→",
    "in": "∈",
    "ldots": "…",
    "infty": "∞",
    "approx": "≈",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "lambda": "λ",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "theta": "θ",
    "quad": WIDE,
    "|": "‖",
    "mid": "|",
    "{": "{",
    "}": "}",
    ",": " ",
}
FUNCTIONS = ("tanh", "softmax", "exp", "log", "diag", "relu", "max", "min", "cos", "sin", "det", "argmax", "rot")
OVER = {"bar": "\u0304", "tilde": "\u0303", "hat": "\u0302", "overrightarrow": "\u20d7", "overleftarrow": "\u20d6"}
"""Accents as combining characters."""
DRAWN = {"bar": "¯", "tilde": "~", "hat": "^", "overrightarrow": "→", "overleftarrow": "←"}
LOW = dict(zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"))
HIGH = dict(zip("0123456789+-=()nistk⊤", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˢᵗᵏᵀ"))
_PART = re.compile(r"\\([A-Za-z]+|.)|(\s+)|([A-Za-z])|(\d+(?:\.\d+)?|\.\d+)|(.)")


@dataclass(frozen=True)
class Node:
    """A part of a formula: a leaf with its text, or a form with parts inside.

    >>> parse("x_t").parts[0].kind
    'script'
    """

    kind: str
    """row, group, name, number, sign, space, function, text, fraction, root, over or script"""
    text: str = ""
    parts: tuple[Node | None, ...] = ()


@cache
def parse(tex: str) -> Node:
    """The tree of a formula.

    >>> [part.text for part in parse("a + b").parts if part.kind != "space"]
    ['a', '+', 'b']
    """
    reader = _Reader(list(_PART.finditer(tex)))
    row = reader.row()
    if reader.at < len(reader.found):
        raise ValueError(f"formula {tex!r}: a brace too many")
    return row


class _Reader:
    def __init__(self, found: list[re.Match[str]]) -> None:
        self.found, self.at = found, 0

    def row(self, ends: bool = False) -> Node:
        parts: list[Node | None] = []
        while self.at < len(self.found) and self.found[self.at][0] != "}":
            mark = self.found[self.at][0]
            if mark in "_^" and mark:
                self.at += 1
                parts.append(_scripted(parts.pop() if parts else Node("row"), mark, self.one()))
            else:
                parts.append(self.one(spaces=True))
        if ends:
            if self.at == len(self.found):
                raise ValueError("formula: a brace is not closed")
            self.at += 1
        return Node("row", parts=tuple(parts))

    def one(self, spaces: bool = False) -> Node:
        """The next thing: a group in braces, a command with its arguments, or a character."""
        while self.at < len(self.found) and self.found[self.at][2] and not spaces:
            self.at += 1
        if self.at == len(self.found):
            raise ValueError("formula: something is missing at its end")
        match = self.found[self.at]
        self.at += 1
        command, space, letter, number, sign = match.groups()
        if command:
            return self.command(command)
        if space:
            return Node("space", " ")
        if letter or number:
            return Node("name" if letter else "number", match[0])
        return self.row(ends=True) if sign == "{" else Node("sign", sign)

    def command(self, name: str) -> Node:
        if name == "frac":
            return Node("fraction", parts=(self.one(), self.one()))
        if name == "sqrt":
            return Node("root", parts=(self.one(),))
        if name in OVER:
            return Node("over", name, (self.one(),))
        if name == "text":
            return Node("text", "".join(_written(part) for part in self.one().parts))
        if name in FUNCTIONS:
            return Node("function", name)
        if name in SIGNS:
            greek = SIGNS[name].isalpha() and name not in ("sum", "prod")
            return Node("space" if name in ("quad", ",") else "name" if greek else "sign", SIGNS[name])
        raise ValueError(f"formula: \\{name} is not known")


def _written(part: Node | None) -> str:
    return part.text if part else ""


def _scripted(base: Node | None, mark: str, script: Node) -> Node:
    low, high = (script, None) if mark == "_" else (None, script)
    if base is not None and base.kind == "script":  # x_t^2: the second script of the same base
        return Node("script", parts=(base.parts[0], base.parts[1] or low, base.parts[2] or high))
    return Node("script", parts=(base, low, high))


def plain(tex: str) -> str:
    """A formula as a line of text.

    >>> plain(r"h_t = \\tanh(W h_{t-1} + U x_t + b)"), plain(r"\\frac{q \\cdot k}{\\sqrt{d}}")
    ('hₜ = tanh(W hₜ₋₁ + U xₜ + b)', '(q · k) / √d')
    """
    text = re.sub("(?<=[∂∇]) ", "", re.sub(" +", " ", _plain(parse(tex))))
    return unicodedata.normalize("NFC", re.sub(f" ?{WIDE} ?", "   ", text)).strip()


def _plain(node: Node | None) -> str:
    if node is None:
        return ""
    inner = [_plain(part) for part in node.parts]
    if node.kind == "row":
        return "".join(inner)
    if node.kind == "fraction":
        simple = [" " not in text.replace("∂ ", "∂") for text in inner]
        sides = [text if bare else f"({text})" for text, bare in zip(inner, simple)]
        return "/".join(sides) if all(simple) else " / ".join(sides)
    if node.kind == "root":
        return f"√{inner[0]}" if re.fullmatch(r"\w+", inner[0]) else f"√({inner[0]})"
    if node.kind == "over":
        return inner[0][:1] + OVER[node.text] + inner[0][1:]
    if node.kind == "script":
        return inner[0] + _small(inner[1], LOW, "_") + _small(inner[2], HIGH, "^")
    return node.text


def _small(text: str, table: dict[str, str], mark: str) -> str:
    bare = text.replace(" ", "")
    if not bare:
        return ""
    if all(char in table for char in bare):
        return "".join(table[char] for char in bare)
    return f"{mark}{text}" if len(text) == 1 else f"{mark}{{{text}}}"


def mathml(tex: str) -> str:
    """A formula as MathML, which browsers draw by themselves.

    >>> mathml("x_t")
    '<math><msub><mi>x</mi><mi>t</mi></msub></math>'
    """
    return f"<math>{_mathml(parse(tex))}</math>" if tex else ""


def _mathml(node: Node | None) -> str:
    if node is None:
        return "<mrow></mrow>"
    if node.kind == "script":
        return _scripts(*node.parts)
    inner = "".join(_mathml(part) for part in (_grouped(node.parts) if node.kind == "row" else node.parts))
    match node.kind:
        case "row":
            return inner if len(node.parts) == 1 else f"<mrow>{inner}</mrow>"
        case "group":
            return f"<mrow>{inner}</mrow>"
        case "fraction":
            return f"<mfrac>{inner}</mfrac>"
        case "root":
            return f"<msqrt>{inner}</msqrt>"
        case "over":
            return f'<mover accent="true">{inner}<mo>{DRAWN[node.text]}</mo></mover>'
        case "space":
            return {WIDE: '<mspace width="1em"/>', THIN: '<mspace width="0.2em"/>'}.get(node.text, "")
    tag = {"name": "mi", "function": "mi", "number": "mn", "text": "mtext"}.get(node.kind, "mo")
    text = escape(node.text)
    if tag == "mtext":  # a browser drops spaces at the ends
        text = re.sub("^ | $", "\u00a0", text)
    return f"<{tag}>{text if tag == 'mtext' else text.replace('-', '−')}</{tag}>"


def _grouped(parts: tuple[Node | None, ...]) -> list[Node | None]:
    """Brackets with what is inside as one part, so that they grow with it alone; a space behind a function stays."""
    open_: list[list[Node | None]] = [[]]
    for part in parts:
        sign = part.parts[0] if part and part.kind == "script" else part
        is_sign = sign is not None and sign.kind == "sign"
        before = open_[-1][-1] if open_[-1] else None
        if is_sign and sign is part and sign.text in ("(", "["):  # type: ignore[union-attr]
            open_.append([part])
        elif is_sign and sign.text in (")", "]") and len(open_) > 1:  # type: ignore[union-attr]
            closed = Node("group", parts=(*open_.pop(), sign))
            open_[-1].append(closed if sign is part else Node("script", parts=(closed, *part.parts[1:])))  # type: ignore[union-attr]
        elif part and part.kind == "space" and part.text == " " and before and before.kind == "function":
            open_[-1].append(Node("space", THIN))
        else:
            open_[-1].append(part)
    return [part for group in open_ for part in group]


def _scripts(base: Node | None, low: Node | None, high: Node | None) -> str:
    tall = base is not None and base.text in ("Σ", "Π")
    names = ("munder", "mover", "munderover") if tall else ("msub", "msup", "msubsup")
    tag = names[2] if low and high else names[0] if low else names[1]
    inner = "".join(_mathml(part) for part in (base, low, high) if part is not None)
    return f"<{tag}>{inner}</{tag}>"
