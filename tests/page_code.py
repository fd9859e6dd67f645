#!/usr/bin/env python3
"""The code blocks of README.md and of the pages in src/ and under bindings/: prints path:line: and what is wrong, and
then fails.

A block between fences names its language. Of C and C++ those with a main(), or that include hgemm.h, are compiled beside
include/. Of Python, CMake and the shell all blocks are parsed. readme.sh runs the programs in C.

usage: page_code.py <C compiler> <C++ compiler> [<folder of CUDA's headers>...]
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent


def blocks(page):
    """Line number of the first line, language and text of each block between fences."""
    fence = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(keepends=True), 1):
        mark = re.match(r" {0,3}(`{3,}|~{3,})\s*(\S*)", line)
        if fence is None:
            if mark:
                fence, language, first, text = mark.group(1), mark.group(2), number + 1, []
        elif mark and mark.group(1).startswith(fence) and not mark.group(2):
            yield first, language, "".join(text)
            fence = None
        else:
            text.append(line)
    if fence is not None:
        yield first, "(a fence that is not closed)", ""


def run(command, text=None):
    """None, or what the command says against it."""
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.strip() or f"{command[0]} fails"


def compile_by(command, text):
    folders = [f"-I{SOURCE / folder}" for folder in ("include", "bindings/cblas")]
    return run([*command, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *folders, "-"], text)


def check_python(text):
    try:
        compile(text, "block", "exec")
    except SyntaxError as error:
        return str(error)
    return None


def check_cmake(text):
    """Commands in a condition that is false are parsed and not run."""
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as file:
        file.write(f"if(FALSE)\n{text}\nendif()\n")
        file.flush()
        return run(["cmake", "-P", file.name])


def check_shell(text):
    return run(["bash", "-n"], text)


def check_nothing(text):
    return None


def main(cc, cxx, *cuda):
    of_cuda = [f"-isystem{folder}" for folder in cuda]
    programs = {"c": [cc, "-std=c99", "-xc", *of_cuda], "cpp": [cxx, "-std=c++20", "-xc++", *of_cuda]}
    parsers = {"python": check_python, "cmake": check_cmake, "bash": check_shell, "sh": check_shell,
               "fortran": check_nothing, "rust": check_nothing, "text": check_nothing, "toml": check_nothing}
    checked, failed = Counter(), False
    for page in (SOURCE / "README.md", *sorted((SOURCE / "src").glob("*.md")),
                 *sorted((SOURCE / "bindings").rglob("*.md"))):
        for line, language, text in blocks(page):
            place = f"{page.relative_to(SOURCE)}:{line}"
            answer = None
            if language in parsers:
                answer = parsers[language](text)
            elif language not in programs:
                answer = f"the language is {language!r}, must be one of {', '.join([*programs, *parsers])}"
            elif not re.search(r"\bmain\s*\(|#include <hgemm\.h>", text):
                continue
            elif not cuda and re.search(r"#include <cuda", text):
                print(f"{place}: not compiled, for lack of CUDA's headers")
                continue
            else:
                answer = compile_by(programs[language], text)
            checked[language] += parsers.get(language) is not check_nothing
            if answer is not None:
                failed = True
                print(f"{place}: {answer}")
    print(", ".join(f"{language}: {number}" for language, number in checked.items() if number))
    return failed or not checked["c"] or not checked["python"]


sys.exit(main(*sys.argv[1:]))
