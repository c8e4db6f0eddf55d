#!/usr/bin/env python3
"""Fails when top-level modules of the core crate import each other, directly or in a circle, or when its root has too many names.

Names that the crate root re-exports count as imports of the module they come from. Tests may import anything.
"""

import re
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "crates/hbpca/src"
# The comment, string and test code of a file say nothing about its layer.
NOISE = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"")
MOST_NAMES = 40
TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[allow[^\]]*\]\s*)?mod \w+ \{.*", re.DOTALL)


def names(text: str) -> list[str]:
    """The first segment of every path in a `use` list: of `{a::b, c::{d, e}}` a and c."""
    depth, firsts, expecting = 0, [], True
    for token in re.findall(r"\w+|::|[{},]", text):
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
        elif token == "," and depth == 1:
            expecting = True
        elif depth == 1 and expecting and re.match(r"\w", token):
            firsts.append(token)
            expecting = False
    return firsts


def imports(text: str) -> set[str]:
    found = set(re.findall(r"crate::(\w+)", text))
    for start in (match.end() - 1 for match in re.finditer(r"crate::\{", text)):
        end, depth = start, 0
        while depth > 0 or end == start:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found.update(names(text[start:end]))
    return found


def reexports(root: str) -> dict[str, str]:
    """Where every name of the crate root comes from."""
    origin = {}
    for module, listed, single in re.findall(r"use (?:self::)?(\w+)(?:::\w+)*::(?:\{([^}]*)\}|(\w+));", root):
        for name in re.findall(r"\w+", listed or single):
            origin[name] = module
    return origin


def graph() -> dict[str, dict[str, set[str]]]:
    modules = {path.stem for path in SOURCE.iterdir()} - {"lib"}
    origin = reexports((SOURCE / "lib.rs").read_text())
    edges: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in SOURCE.rglob("*.rs"):
        place = path.relative_to(SOURCE)
        module = place.parts[0].removesuffix(".rs")
        if module == "lib" or "tests" in place.parts or place.name == "tests.rs":
            continue
        text = TESTS.sub("", NOISE.sub("", path.read_text()))
        for name in imports(text):
            imported = name if name in modules else origin.get(name)
            if imported and imported != module:
                edges[module][imported].add(str(place))
    return edges


def circle(edges: dict[str, dict[str, set[str]]]) -> list[str] | None:
    """One circle of imports, if there is any."""
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> list[str] | None:
        if module in path:
            return path[path.index(module) :] + [module]
        if module in done:
            return None
        for imported in sorted(edges.get(module, ())):
            if found := walk(imported, [*path, module]):
                return found
        done.add(module)
        return None

    return next((found for module in sorted(edges) if (found := walk(module, []))), None)


def main() -> int:
    edges = graph()
    if found := circle(edges):
        print("these modules import each other in a circle:")
        for module, imported in pairwise(found):
            print(f"  {module} → {imported} in {', '.join(sorted(edges[module][imported]))}")
        return 1
    public = re.findall(r"(?m)^pub use [^;]*;", (SOURCE / "lib.rs").read_text())
    count = len(reexports("\n".join(public)))
    if count > MOST_NAMES:
        print(f"the root of the core has {count} names beside its modules, {MOST_NAMES} at most: put some into a module")
        return 1
    print(f"{len(edges)} modules of the core, no circle among their imports; {count} names at its root")
    return 0


if __name__ == "__main__":
    sys.exit(main())
