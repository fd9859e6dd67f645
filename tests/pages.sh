#!/usr/bin/env bash
# Rules for the Markdown pages, the folders of arch/ and the tables of files of bindings/: prints path:line: and what is
# wrong, and then fails.
#   tests/pages.sh [FILE OR FOLDER]...      only what lies there; the links' targets may lie anywhere
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
exec python3 - "$@" <<'PYTHON'
import glob
import os
import re
import subprocess
import sys
import urllib.parse

PROSE, TABLE = 110, 160  # characters of a line; code is as narrow as prose
WRITTEN = r"tests/emulator/mutation/results\w*\.md"  # by a program: code, lists of mutants, is as wide as tables
ONE_PAGE = 150           # lines
MOST_FILES = 20          # directly in a folder under arch/

problems = []


def fail(path, line, text):
    problems.append((path, line, text))


def list_files():
    """Files that git knows or would take; without git all but those of build and hidden folders."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        return sorted({p for p in listed.stdout.split("\0") if p and os.path.exists(p)})
    found = []
    for folder, folders, names in os.walk("."):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        found += [os.path.normpath(os.path.join(folder, name)) for name in names]
    return sorted(found)


def blocks(lines):
    """Pairs of line number and text outside of code blocks."""
    fence, indented, in_list, blank = None, False, False, True
    for number, line in enumerate(lines, 1):
        text = line.strip()
        mark = re.match(r"(`{3,}|~{3,})", text)
        if fence:
            if mark and text.startswith(fence) and not text.strip(fence[0]):
                fence = None
            continue
        if mark:
            fence, blank = mark.group(1), False
            continue
        if not text:
            blank = True
            continue
        indent = len(line) - len(line.lstrip(" ")) if not line.startswith("\t") else 4
        if re.match(r"([-*+]|\d+[.)])\s", text) and not indented:
            in_list = True
        elif indent == 0:
            in_list = False
        indented = indent >= (8 if in_list else 4) and (blank or indented)
        blank = False
        if not indented:
            yield number, line


def slug(heading):
    """The anchor that GitHub gives a heading."""
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", plain.replace("*", "")).replace(" ", "-")


def anchors(lines):
    found, seen = set(), {}
    for _, line in blocks(lines):
        heading = re.match(r" {0,3}#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            name = slug(heading.group(1))
            found.add(f"{name}-{seen[name]}" if name in seen else name)
            seen[name] = seen.get(name, 0) + 1
        found.update(re.findall(r"""<\w+[^>]*\s(?:id|name)=["']([^"']+)""", line))
    return found


def targets(line):
    line = re.sub(r"(`+).*?\1", "", line)
    yield from re.findall(r"\]\(\s*<?([^\s)>]+)", line)
    yield from re.findall(r"^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)", line)
    yield from re.findall(r"""<\w+[^>]*\s(?:href|src)=["']([^"']+)""", line)


def check_page(path, pages):
    outside_code = dict(blocks(pages[path]))
    for number, line in enumerate(pages[path], 1):
        where, most = ("prose", PROSE) if number in outside_code else ("code", PROSE)
        if where == "prose" and line.lstrip().startswith("|"):
            where, most = "a table", TABLE
        elif where == "code" and re.fullmatch(WRITTEN, path):
            most = TABLE
        if len(line) > most:
            fail(path, number, f"{len(line)} characters, at most {most} in {where}")
    for number, line in outside_code.items():
        for target in targets(line):
            check_link(path, number, target, pages)


def check_link(path, number, target, pages):
    if re.match(r"[a-z][a-z0-9+.-]*:|//", target, re.I):
        return
    name, _, anchor = urllib.parse.unquote(target).partition("#")
    aim = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
    if not os.path.exists(aim):
        fail(path, number, f"link to {target}: no such file")
    elif anchor and aim.endswith(".md") and anchor not in anchors(pages.get(aim, [])):
        fail(path, number, f"link to {target}: {aim} has no such heading")


def check_length(path, lines):
    one_page = path in ("README.md", "src/README.md", "arch/README.md") or re.fullmatch(r"arch/[^/]+/README\.md", path)
    if one_page and len(lines) > ONE_PAGE:
        fail(path, ONE_PAGE + 1, f"{len(lines)} lines, at most {ONE_PAGE}")


def check_folders(files):
    count = {}
    for path in files:
        if path.startswith("arch/") and not os.path.islink(path):
            count[os.path.dirname(path)] = count.get(os.path.dirname(path), 0) + 1
    for folder, number in count.items():
        if number > MOST_FILES:
            fail(folder, 1, f"{number} files directly in it, at most {MOST_FILES}")


def cells(lines):
    """Line number and first cell of each row of a table whose first column is called "file"."""
    inside = False
    for number, line in blocks(lines):
        cell = line.split("|")[1].strip() if line.startswith("|") and line.count("|") > 1 else None
        if cell is None:
            inside = False
        elif cell == "file":
            inside = True
        elif inside and not set(cell) <= set(":- "):
            yield number, cell


def check_files_of_bindings(files, pages):
    """A binding's pages have tables of files: what these name is there, and they name all but what belongs to builds."""
    named, wanted = set(), {}
    for path in files:
        parts = path.split("/")
        if parts[0] == "bindings" and len(parts) > 2 and not re.search(r"\.(md|map|lock|toml)$|CMakeLists\.txt$", path):
            wanted[path] = "/".join(parts[:2])
    for path in pages:
        if not path.startswith("bindings/"):
            continue
        for number, cell in cells(pages[path]):
            for name in re.findall(r"`([^`]+)`", cell):
                found = glob.glob(os.path.normpath(os.path.join(os.path.dirname(path), name)))
                if not found:
                    fail(path, number, f"{name}: no such file")
                named.update(found)
    for path, binding in wanted.items():
        if path not in named:
            fail(path, 1, f"no table of files in the pages of {binding} names it")


files = list_files()
pages = {path: open(path, encoding="utf-8").read().splitlines() for path in files if path.endswith(".md")}
for path in pages:
    check_page(path, pages)
    check_length(path, pages[path])
check_folders(files)
check_files_of_bindings(files, pages)
chosen = [os.path.normpath(os.path.relpath(argument)) for argument in sys.argv[1:]] or ["."]
problems = [p for p in problems if any(c == "." or p[0] == c or p[0].startswith(c + "/") for c in chosen)]
for path, line, text in sorted(problems):
    print(f"{path}:{line}: {text}")
if not pages:
    sys.exit("no pages found")
sys.exit(1 if problems else 0)
PYTHON
