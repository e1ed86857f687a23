"""Size limits of the code (engineering notes 1): modules, functions, protocols. Exit code 1 names every violation."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE_LINES = 400
FUNCTION_LINES = 50
FUNCTION_P95 = 35
PROTOCOL_METHODS = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> list[Path]:
    """Every product module of the workspace."""
    roots = [ROOT / "shared/contracts/src", *ROOT.glob("packages/*/src"), *ROOT.glob("workers/*/src")]
    return sorted(path for root in roots for path in root.rglob("*.py"))


def length(node: Function) -> int:
    """Lines of a function without its docstring."""
    body = node.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    first = body[1] if documented else body[0]
    return (node.end_lineno or node.lineno) - first.lineno + 2


def functions(tree: ast.Module) -> Iterator[Function]:
    """All functions of a module, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def is_protocol(node: ast.ClassDef) -> bool:
    """True for a class that derives from `Protocol` itself."""
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)


def problems_of(path: Path, lengths: list[int]) -> Iterator[str]:
    """The violations of one module; adds its function lengths to `lengths`."""
    text = path.read_text()
    name = path.relative_to(ROOT)
    lines = text.count("\n")
    if lines > MODULE_LINES:
        yield f"{name}: {lines} lines, the limit is {MODULE_LINES}"
    tree = ast.parse(text)
    for node in functions(tree):
        size = length(node)
        lengths.append(size)
        if size > FUNCTION_LINES:
            yield f"{name}:{node.lineno}: {node.name} has {size} lines, the limit is {FUNCTION_LINES}"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and is_protocol(node):
            methods = sum(isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) for item in node.body)
            if methods > PROTOCOL_METHODS:
                yield f"{name}:{node.lineno}: {node.name} has {methods} methods, the limit is {PROTOCOL_METHODS}"


def check() -> list[str]:
    """All violations of the workspace."""
    lengths: list[int] = []
    found = [problem for path in sources() for problem in problems_of(path, lengths)]
    p95 = sorted(lengths)[int(len(lengths) * 0.95)] if lengths else 0
    if p95 > FUNCTION_P95:
        found.append(f"95% of the functions have up to {p95} lines, the limit is {FUNCTION_P95}")
    return found


if __name__ == "__main__":
    violations = check()
    print("\n".join(violations) or "limits: kept")
    sys.exit(bool(violations))
