#!/usr/bin/env python3
"""Who may include whom, and "every file includes what it uses": prints path:line: and what is wrong, then fails.

usage: includes.py [SOURCE FOLDER]

src/README.md states the rules. A name counts as used where it stands as a word outside of comments and texts. The
check knows names that one header alone declares at the level of a namespace; of others it says nothing.
"""

import os
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOMS = ["base", "plan", "check", "driver", "tuning", "run", "api", "tune", "tools"]
BACKENDS = ["host", *re.findall(r"^BACKEND\((\w+)", (Path(__file__).parents[1] / "arch/backends.def").read_text(), re.M)]
ARCH_MAY_USE = re.compile(r"src/(base/.*|plan/.*|driver/driver\.hpp|run/(handle|kernel_table)\.hpp)")
BINDINGS_MAY_USE = re.compile(r"src/(base/.*|check/.*|plan/problem\.hpp)")
SUFFIXES = {".cpp", ".hpp", ".cuh", ".cu", ".def", ".h"}

problems: list[str] = []


def fail(path: str, line: int, text: str) -> None:
    problems.append(f"{path}:{line}: {text}")


def sources(*folders: str) -> dict[str, str]:
    return {str(path): path.read_text(encoding="utf-8") for folder in folders for path in sorted(Path(folder).rglob("*"))
            if path.suffix in SUFFIXES and path.is_file()}


def includes(text: str) -> list[tuple[int, str]]:
    return [(number, match[1]) for number, line in enumerate(text.splitlines(), 1)
            if (match := re.match(r'\s*#\s*include\s+"([^"]+)"', line))]


# ---- Who may include whom


def room_of(path: str) -> str:
    room = path.split("/")[1]
    if path.startswith("src/") and room not in ROOMS:
        sys.exit(f"{path}: no folder of src that the rules know")
    return room


def breach(path: str, target: str) -> str:
    """Why that file may not include the target; "" if it may."""
    host = path.endswith((".cpp", ".hpp"))
    if path.startswith(("src/", "arch/")) and target.startswith(("tests/", "bindings/")):
        return "the library includes nothing of that"
    if host and target.endswith(".cuh"):
        return "host code includes no device file"
    if path.startswith("src/"):
        if target.startswith("src/") and ROOMS.index(room_of(target)) > ROOMS.index(room_of(path)):
            return f"src/{room_of(path)} lies below src/{room_of(target)}"
        if target.startswith("arch/") and target not in ("arch/common/types.hpp", "arch/backends.def") and \
                not re.fullmatch(r"src/plan/backends_\w+\.cpp", path):
            return "src includes of arch types.hpp and backends.def alone"
    elif path.startswith("arch/"):
        own, other = room_of(path), room_of(target) if target.startswith("arch/") else ""
        if other in BACKENDS and other != own:
            return f"arch/{own} includes nothing of {'a' if own == 'common' else 'another'} backend"
        if re.match(r"arch/\w+/pack\.", path) and "/choose/" in target:
            return "what is packed stands in the plan"
        if target.startswith("src/") and not ARCH_MAY_USE.fullmatch(target):
            return "arch does not include this of src"
    elif path.startswith("bindings/"):
        if target.startswith("arch/") or target.startswith("src/") and not BINDINGS_MAY_USE.fullmatch(target):
            return "bindings do not include this"
    return ""


def check_arrows(files: dict[str, str]) -> None:
    for path, text in files.items():
        for line, target in includes(text):
            if why := breach(path, target):
                fail(path, line, f"{target}: {why}")


# ---- Every file includes what it uses


def code_of(text: str) -> str:
    """Without comments, texts and preprocessor's lines, each replaced so that lines keep their numbers."""
    keep_lines = lambda match: "\n" * match[0].count("\n")  # noqa: E731
    text = re.sub(r'R"(\w*)\(.*?\)\1"', keep_lines, text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', keep_lines, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", keep_lines, text, flags=re.M)


def outer(code: str) -> str:
    """What stands outside of braces, but for those of namespaces."""
    result, depth, opened = [], 0, []
    for piece in re.split(r"([{}])", code):
        if piece == "{":
            is_namespace = re.search(r'(?:\bnamespace\b[\w:\s]*|extern\s*)$', result[-1] if result else "") is not None
            opened.append(is_namespace)
            depth += not is_namespace
        elif piece == "}":
            if opened and not opened.pop():
                depth -= 1
                if depth == 0:
                    result.append(" {};" if result else "")
        elif depth == 0:
            result.append(piece)
    return "".join(result)


DECLARATIONS = (
    re.compile(r"\b(?:struct|class|enum(?:\s+class)?)\s+(?:alignas\([^)]*\)\s*)?(\w+)\s*(?:final\s*)?(?::[^;{]*)?\{"),
    re.compile(r"\busing\s+(\w+)\s*="),
    re.compile(r"\bconcept\s+(\w+)\s*="),
    re.compile(r"\b(?:constexpr|const)\s+[\w:<>]+[\w:<>\s*&]*?\b(\w+)\s*(?:=|\[|\{)"),
    re.compile(r"[\w>&*]\s+[&*]*(\w+)\s*\([^;{}]*\)\s*(?:const\s*)?(?:noexcept\s*)?(?:;|\{|->)"),
)
WORDS = {"if", "for", "while", "switch", "return", "sizeof", "alignas", "decltype", "static_assert", "asm", "operator",
         "requires", "volatile"}


def declared(text: str) -> set[str]:
    code = outer(code_of(text))
    return {name for pattern in DECLARATIONS for name in pattern.findall(code)} - WORDS


# What may be a variable, parameter, member or enumerator in some file: it says nothing where it stands.
LOCAL = re.compile(r"[\w>&*\]]\s+[&*]*(\w+)\s*(?==[^=]|[;,)\[{>]|:(?!:))|[{,]\s*(\w+)\s*(?==[^=]|[,};])")
# What may be declared within a class or function, and so be another thing of the same name.
INNER = (DECLARATIONS[0], re.compile(r"\b(?!return|else|case|throw|new|not)\w+[>&*]*\s+[&*]*(\w+)\s*\("),
         re.compile(r"\bauto\s+(\w+)\s*="), re.compile(r"\bstd::(?:ranges::)?(\w+)\s*[(<]"))


def known_names(files: dict[str, str]) -> dict[str, str]:
    """The names that one header alone declares, and no file uses for something of its own; with that header."""
    homes: dict[str, set[str]] = defaultdict(set)
    locals_: set[str] = set()
    for path, text in files.items():
        names, code = declared(text), code_of(text)
        if path.endswith((".hpp", ".cuh")):
            for name in names:
                homes[name].add(path)
        locals_ |= {name for pair in LOCAL.findall(code) for name in pair if name not in names}
        locals_ |= {name for pattern in INNER for name in pattern.findall(code) if name not in names}
    return {name: min(paths) for name, paths in homes.items() if len(paths) == 1 and name not in locals_}


def check_uses(files: dict[str, str]) -> None:
    """A directly included header may provide what its own text names; so may x.hpp for x.cpp what it includes."""
    known = known_names(files)
    words = {path: set(re.findall(r"\w+", code_of(text))) for path, text in files.items()}
    for path, text in files.items():
        if not path.endswith((".cpp", ".hpp", ".cuh", ".cu")):
            continue
        direct = {target for _, target in includes(text)}
        own = os.path.splitext(path)[0] + ".hpp"
        if path.endswith(".cpp") and own in files:
            direct |= {target for _, target in includes(files[own])}
        provided = set().union(*(words.get(target, set()) for target in direct)) if direct else set()
        own_names = declared(text) | set(re.findall(r"\b(?:struct|class)\s+(\w+);", text))
        seen: set[str] = set()
        for number, line in enumerate(code_of(text).splitlines(), 1):
            for name in re.findall(r"(?<![\w.])(?<!->)(?<!std::)(?<!CLI::)(?<!nlohmann::)(\w+)", line):
                home = known.get(name, path)
                if home not in seen | direct | {path} and name not in provided | own_names and not breach(path, home):
                    seen.add(home)
                    fail(path, number, f"uses {name} of {home} and does not include it")


def main() -> None:
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1])
    library = sources("src", "arch")
    check_arrows(library | sources("bindings"))
    check_uses(library)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
