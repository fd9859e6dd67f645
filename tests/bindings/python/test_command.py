"""python -m hgemm. With HGEMM_TEST_SHIM, a libhgemm_cublas.so, also that programs are run under it."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import hgemm
from hgemm import __main__ as command

SHIM = os.environ.get("HGEMM_TEST_SHIM")


def run(*arguments, **environment):
    return subprocess.run([sys.executable, "-m", "hgemm", *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


class Info(unittest.TestCase):
    def test_says_what_is_installed(self):
        done = run("info", HGEMM_BACKEND="host")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = dict(line.split(":", 1) for line in done.stdout.splitlines())
        self.assertEqual(rows["hgemm"].strip(), hgemm.version)
        self.assertEqual(rows["library"].strip(), hgemm.library_path)
        self.assertEqual((rows["device"].strip(), rows["backend"].strip()), ("the CPU", "host"))

    def test_says_why_there_is_no_device(self):
        done = run("info", HGEMM_BACKEND="none")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, "(?m)^device: +none: .*HGEMM_BACKEND")

    def test_version(self):
        self.assertEqual(run("--version").stdout.strip(), hgemm.version)

    def test_a_library_that_is_none(self):
        done = run("info", HGEMM_PYTHON_LIBRARY="/nowhere/libhgemm.so.1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("HGEMM_PYTHON_LIBRARY", done.stderr)


class Run(unittest.TestCase):
    def refused(self, text, *arguments):
        done = run("run", *arguments)
        self.assertEqual(done.returncode, 2)
        self.assertIn(text, done.stderr)

    def test_wrong_commands(self):
        self.refused("required", )
        self.refused("there is no file", "nowhere.py")
        self.refused("no executable on PATH", "no-such-program")
        self.refused("invalid choice", "--log", "all", "x.py")
        self.refused("unrecognized arguments", "--verify", "x.py")
        done = run("info", "--strict")
        self.assertEqual(done.returncode, 2)

    def test_without_a_shim(self):
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "libhgemm.so.1"
            library.symlink_to(Path(hgemm.library_path).resolve())
            done = run("run", sys.executable, HGEMM_PYTHON_LIBRARY=str(library))
        self.assertEqual(done.returncode, 2)
        self.assertIn("built without CUDA", done.stderr)

    def test_variables(self):
        parsed = command.parser().parse_args(["run", "--batch-invariant", "--strict", "--log", "calls", "-m", "timeit",
                                              "--number", "1"])
        self.assertEqual((parsed.module, parsed.program, parsed.arguments), (True, "timeit", ["--number", "1"]))
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            shim = Path(folder) / "libhgemm_cublas.so"
            shim.touch()
            stack.callback(setattr, command, "library_path", command.library_path)
            stack.callback(setattr, command, "shim_path", command.shim_path)
            command.shim_path = lambda: str(shim)
            variables = command.shim_environment(parsed)
        self.assertEqual(variables["LD_PRELOAD"].split(":")[0], str(shim))
        self.assertEqual([variables[f"HGEMM_SHIM{name}"] for name in ("", "_MODE", "_STRICT", "_LOG")],
                         ["on", "batch-invariant", "1", "calls"])

    def run_by_this_python(self, *options, program="program.py", **environment):
        """What the program says of its interpreter. In the shim's place stands the library, which serves nothing."""
        source = ("import json, os, sys\n"
                  "print(json.dumps([sys.flags.optimize, sys.stdout.write_through, sys.warnoptions,"
                  " sys.flags.utf8_mode, os.environ['HGEMM_SHIM'], sys.argv[1:]]))")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("libhgemm.so.1", "libhgemm_cublas.so"):
                (Path(folder) / name).symlink_to(Path(hgemm.library_path).resolve())
            (Path(folder) / "program.py").write_text(source)
            (Path(folder) / "app").mkdir()
            (Path(folder) / "app/__main__.py").write_text(source)
            with zipfile.ZipFile(Path(folder) / "app.pyz", "w") as archive:
                archive.writestr("__main__.py", source)
            environment = {"HGEMM_SHIM": "", "PYTHONUNBUFFERED": "", "PYTHONUTF8": "0", **environment}
            variables = {name: value for name, value in {**os.environ, **environment}.items() if value}
            done = subprocess.run([sys.executable, *options, "run", f"{folder}/{program}", "-O", "x"],
                                  capture_output=True, text=True, timeout=60,
                                  env={**variables, "HGEMM_PYTHON_LIBRARY": f"{folder}/libhgemm.so.1"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_options_of_the_interpreter(self):
        given = ["-O", "-u", "-W", "error", "-X", "utf8"]
        if sys.version_info < (3, 10):
            given.remove("-u")  # it cannot be told there
        want = [1, "-u" in given, ["error"], 1, "on", ["-O", "x"]]
        for last in (["-m", "hgemm"], ["-mhgemm"], ["-Bm", "hgemm"]):
            with self.subTest(last):
                self.assertEqual(self.run_by_this_python(*given, *last), want)
        self.assertEqual(self.run_by_this_python("-m", "hgemm")[:3], [0, False, []])

    def test_a_chosen_shim_mode_is_kept(self):
        self.assertEqual(self.run_by_this_python("-m", "hgemm", HGEMM_SHIM="verify")[4], "verify")

    def test_folders_and_archives(self):
        for program in ("app", "app.pyz"):
            self.assertEqual(self.run_by_this_python("-O", "-m", "hgemm", program=program)[0], 1)

    @unittest.skipUnless(SHIM, "this libhgemm was built without CUDA, and has no shim")
    def test_a_program_runs_under_the_shim(self):
        library = str(Path(SHIM).parent / "libhgemm.so.1")
        program = ("import ctypes, os, sys\n"
                   "print(ctypes.CDLL(None).hgemm_shim_served(), os.environ['HGEMM_SHIM_LOG'], sys.argv[1:])")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.py"
            path.write_text(program)
            done = run("run", "--log", "summary", str(path), "--strict", "x y", HGEMM_PYTHON_LIBRARY=library)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "0 summary ['--strict', 'x y']\n")
        self.assertEqual(done.stderr, "")  # no product, no summary


class Bench(unittest.TestCase):
    def test_arguments_are_handed_on(self):
        with tempfile.TemporaryDirectory() as folder:
            program, library = Path(folder) / "hgemm-bench", Path(folder) / "lib/libhgemm.so.1"
            program.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
            program.chmod(0o755)
            library.parent.mkdir()
            library.symlink_to(hgemm.library_path)  # beside it lies no program
            done = run("bench", "--help", "run", "a b", PATH=f"{folder}:{os.environ['PATH']}",
                       HGEMM_PYTHON_LIBRARY=str(library))
        self.assertEqual((done.returncode, done.stdout), (0, "--help|run|a b|"))

    @unittest.skipUnless(command.find_bench(), "this package has no hgemm-bench")
    def test_own(self):
        done = run("bench", "--version")
        self.assertEqual((done.returncode, done.stdout.split(" (")[0]), (0, f"libhgemm {hgemm.version}"), done.stderr)

    def test_where_there_is_none(self):
        output = io.StringIO()
        with contextlib.redirect_stderr(output), contextlib.ExitStack() as stack:
            stack.callback(setattr, command, "find_bench", command.find_bench)
            command.find_bench = lambda: None
            self.assertEqual(command.main(["bench", "run"]), 2)
        self.assertIn("hgemm-tools", output.getvalue())


if __name__ == "__main__":
    unittest.main()
