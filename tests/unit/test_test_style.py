"""Tests go through public words: they read, import and patch no private name, and no constants but `limits`."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
OF_PROTOCOLS = {"_replace", "_asdict", "_fields", "_make", "_exit", "_repr_html_", "_repr_mimebundle_"}


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name not in {"_", *OF_PROTOCOLS}


def own_names(tree):
    """What the classes of a file call their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def faults(tree, own=()):
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name("self" | "cls"), name):
                wrong = is_private(name) and name not in own
            case ast.Attribute(_, name):
                wrong = is_private(name)
            case ast.Import(names):
                wrong = any(is_private(part) for one in names for part in one.name.split("."))
            case ast.ImportFrom(str(module), names):
                wrong = any(map(is_private, [*module.split("."), *(one.name for one in names)]))
            case ast.Call(ast.Attribute(_, "setattr"), [ast.Constant(str(target)), *_]):
                wrong = any(map(is_private, target.split("."))) or unsettable(target)
            case ast.Call(ast.Attribute(_, "setattr"), [place, ast.Constant(str(name)), *_]):
                wrong = is_private(name) or unsettable(f"{ast.unparse(place)}.{name}")
            case ast.Call(ast.Name("setattr" | "getattr" | "hasattr" | "delattr"), [_, ast.Constant(str(name)), *_]):
                wrong = is_private(name)
            case _:
                wrong = False
        if wrong:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def unsettable(target):
    """Whether it is a constant of a module, other than of `limits`."""
    *place, name = target.split(".")
    return name.isupper() and place[-1] != "limits"


def test_tests_go_through_public_words():
    trees = {path: ast.parse(path.read_text()) for path in sorted(FOLDER.rglob("*.py"))}
    own = {name for tree in trees.values() for name in own_names(tree)}
    found = [f"{path.relative_to(FOLDER)}, {fault}" for path, tree in trees.items() for fault in faults(tree, own)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "learner.engine._posterior.values()",
        "self._plan_for(None)",
        "from dobandit.policy.engine import _hidden",
        "from dobandit._hidden import word",
        "import dobandit._hidden",
        'monkeypatch.setattr(sql, "_PAGE", 3)',
        'monkeypatch.setattr("dobandit.storage.sql._PAGE", 3)',
        'monkeypatch.setattr(accumulator, "PART", 3)',
        'getattr(engine, "_plans")',
    ],
)
def test_what_is_no_public_word_is_found(line):
    assert len(list(faults(ast.parse(line)))) == 1
