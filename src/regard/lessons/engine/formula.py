"""Formulas in a small subset of TeX, converted to a line of text and to MathML.

Supported: names, numbers, operators, _ and ^, braces, \\frac \\sqrt \\bar \\tilde \\hat \\text, Greek letters,
named functions such as \\tanh, and the symbols of SYMBOLS.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from html import escape

WIDE, THIN = "\u2003", "\u2009"
"""spaces between two formulas on a line, and after a function"""
SYMBOLS = {
    "sum": "Σ", "prod": "Π", "partial": "∂", "nabla": "∇", "cdot": "·", "times": "×", "odot": "∘", "top": "⊤",
    "le": "≤", "ge": "≥", "ne": "≠", "to": "→", "leftarrow": "←", "in": "∈", "ldots": "…", "infty": "∞", "approx": "≈",
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "lambda": "λ", "pi": "π",
    "mu": "μ", "rho": "ρ", "sigma": "σ", "tau": "τ", "pm": "±", "theta": "θ", "quad": WIDE,
    "|": "‖", "mid": "|", "{": "{", "}": "}", ",": " ",
}  # fmt: skip
FUNCTIONS = ("tanh", "softmax", "exp", "log", "diag", "relu", "max", "min", "cos", "sin", "det", "argmax", "rot")
ACCENTS = {"bar": "\u0304", "tilde": "\u0303", "hat": "\u0302", "overrightarrow": "\u20d7", "overleftarrow": "\u20d6"}
ACCENT_MARKS = {"bar": "¯", "tilde": "~", "hat": "^", "overrightarrow": "→", "overleftarrow": "←"}
"""accents as combining characters, and as MathML operators"""
SUBSCRIPTS = dict(zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"))
SUPERSCRIPTS = dict(zip("0123456789+-=()nistk⊤", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˢᵗᵏᵀ"))
_TOKEN = re.compile(r"\\([A-Za-z]+|.)|(\s+)|([A-Za-z])|(\d+(?:\.\d+)?|\.\d+)|(.)")


@dataclass(frozen=True)
class FormulaNode:
    """Node of a formula's syntax tree: a leaf with text, or a construct with parts."""

    kind: str
    """row, group, name, number, operator, space, function, text, fraction, root, accent or script"""
    text: str = ""
    parts: tuple[FormulaNode | None, ...] = ()


@cache
def parse_formula(tex: str) -> FormulaNode:
    """Syntax tree of a formula.

    >>> [part.text for part in parse_formula("a + b").parts if part.kind != "space"]
    ['a', '+', 'b']
    """
    parser = _Parser(list(_TOKEN.finditer(tex)))
    row = parser.row()
    if parser.at < len(parser.tokens):
        raise ValueError(f"formula {tex!r}: unmatched }}")
    return row


class _Parser:
    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self.tokens, self.at = tokens, 0

    def row(self, braced: bool = False) -> FormulaNode:
        parts: list[FormulaNode | None] = []
        while self.at < len(self.tokens) and self.tokens[self.at][0] != "}":
            mark = self.tokens[self.at][0]
            if mark in "_^" and mark:
                self.at += 1
                parts.append(_add_script(parts.pop() if parts else FormulaNode("row"), mark, self.item()))
            else:
                parts.append(self.item(spaces=True))
        if braced:
            if self.at == len(self.tokens):
                raise ValueError("formula: unmatched {")
            self.at += 1
        return FormulaNode("row", parts=tuple(parts))

    def item(self, spaces: bool = False) -> FormulaNode:
        """The next group in braces, command with its arguments, or character."""
        while self.at < len(self.tokens) and self.tokens[self.at][2] and not spaces:
            self.at += 1
        if self.at == len(self.tokens):
            raise ValueError("formula: an argument is missing at the end")
        match = self.tokens[self.at]
        self.at += 1
        command, space, letter, number, operator = match.groups()
        if command:
            return self.command(command)
        if space:
            return FormulaNode("space", " ")
        if letter or number:
            return FormulaNode("name" if letter else "number", match[0])
        return self.row(braced=True) if operator == "{" else FormulaNode("operator", operator)

    def command(self, name: str) -> FormulaNode:
        if name == "frac":
            return FormulaNode("fraction", parts=(self.item(), self.item()))
        if name == "sqrt":
            return FormulaNode("root", parts=(self.item(),))
        if name in ACCENTS:
            return FormulaNode("accent", name, (self.item(),))
        if name == "text":
            return FormulaNode("text", "".join(part.text if part else "" for part in self.item().parts))
        if name in FUNCTIONS:
            return FormulaNode("function", name)
        if name in SYMBOLS:
            greek = SYMBOLS[name].isalpha() and name not in ("sum", "prod")
            return FormulaNode("space" if name in ("quad", ",") else "name" if greek else "operator", SYMBOLS[name])
        raise ValueError(f"formula: \\{name} is not supported")


def _add_script(base: FormulaNode | None, mark: str, script: FormulaNode) -> FormulaNode:
    low, high = (script, None) if mark == "_" else (None, script)
    if base is not None and base.kind == "script":  # x_t^2: the second script of the same base
        return FormulaNode("script", parts=(base.parts[0], base.parts[1] or low, base.parts[2] or high))
    return FormulaNode("script", parts=(base, low, high))


def plain_text(tex: str) -> str:
    """A formula as a line of text.

    >>> plain_text(r"h_t = \\tanh(W h_{t-1} + U x_t + b)"), plain_text(r"\\frac{q \\cdot k}{\\sqrt{d}}")
    ('hₜ = tanh(W hₜ₋₁ + U xₜ + b)', '(q · k) / √d')
    """
    text = re.sub("(?<=[∂∇]) ", "", re.sub(" +", " ", _plain(parse_formula(tex))))
    return unicodedata.normalize("NFC", re.sub(f" ?{WIDE} ?", "   ", text)).strip()


def _plain(node: FormulaNode | None) -> str:
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
    if node.kind == "accent":
        return inner[0][:1] + ACCENTS[node.text] + inner[0][1:]
    if node.kind == "script":
        return inner[0] + _script_text(inner[1], SUBSCRIPTS, "_") + _script_text(inner[2], SUPERSCRIPTS, "^")
    return node.text


def _script_text(text: str, table: dict[str, str], mark: str) -> str:
    bare = text.replace(" ", "")
    if not bare:
        return ""
    if all(char in table for char in bare):
        return "".join(table[char] for char in bare)
    return f"{mark}{text}" if len(text) == 1 else f"{mark}{{{text}}}"


def mathml(tex: str) -> str:
    """A formula as MathML, which browsers render natively.

    >>> mathml("x_t")
    '<math><msub><mi>x</mi><mi>t</mi></msub></math>'
    """
    return f"<math>{_mathml(parse_formula(tex))}</math>" if tex else ""


def _mathml(node: FormulaNode | None) -> str:
    if node is None:
        return "<mrow></mrow>"
    if node.kind == "script":
        return _scripts(*node.parts)
    inner = "".join(_mathml(part) for part in (_group_brackets(node.parts) if node.kind == "row" else node.parts))
    if node.kind == "row" and len(node.parts) == 1:
        return inner
    if node.kind in ("row", "group", "fraction", "root"):
        tag = {"fraction": "mfrac", "root": "msqrt"}.get(node.kind, "mrow")
        return f"<{tag}>{inner}</{tag}>"
    if node.kind == "accent":
        return f'<mover accent="true">{inner}<mo>{ACCENT_MARKS[node.text]}</mo></mover>'
    if node.kind == "space":
        return {WIDE: '<mspace width="1em"/>', THIN: '<mspace width="0.2em"/>'}.get(node.text, "")
    tag = {"name": "mi", "function": "mi", "number": "mn", "text": "mtext"}.get(node.kind, "mo")
    text = escape(node.text)
    if tag == "mtext":  # a browser drops spaces at the ends
        text = re.sub("^ | $", "\u00a0", text)
    return f"<{tag}>{text if tag == 'mtext' else text.replace('-', '−')}</{tag}>"


def _group_brackets(parts: tuple[FormulaNode | None, ...]) -> list[FormulaNode | None]:
    """Make each bracketed expression one part, so that its brackets get its height; keep the space after a function."""
    open_: list[list[FormulaNode | None]] = [[]]
    for part in parts:
        sign = part.parts[0] if part and part.kind == "script" else part
        is_sign = sign is not None and sign.kind == "operator"
        before = open_[-1][-1] if open_[-1] else None
        if is_sign and sign is part and sign.text in ("(", "["):  # type: ignore[union-attr]
            open_.append([part])
        elif is_sign and sign.text in (")", "]") and len(open_) > 1:  # type: ignore[union-attr]
            closed = FormulaNode("group", parts=(*open_.pop(), sign))
            open_[-1].append(closed if sign is part else FormulaNode("script", parts=(closed, *part.parts[1:])))  # type: ignore[union-attr]
        elif part and part.kind == "space" and part.text == " " and before and before.kind == "function":
            open_[-1].append(FormulaNode("space", THIN))
        else:
            open_[-1].append(part)
    return [part for group in open_ for part in group]


def _scripts(base: FormulaNode | None, low: FormulaNode | None, high: FormulaNode | None) -> str:
    tall = base is not None and base.text in ("Σ", "Π")
    names = ("munder", "mover", "munderover") if tall else ("msub", "msup", "msubsup")
    tag = names[2] if low and high else names[0] if low else names[1]
    inner = "".join(_mathml(part) for part in (base, low, high) if part is not None)
    return f"<{tag}>{inner}</{tag}>"
