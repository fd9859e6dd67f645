"""Runs a plug-in with a package in the engine's place, in a process of its own, since a plug-in holds for one."""

import importlib
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile
import traceback
import unittest
from pathlib import Path

import hgemm
from hgemm import engines

FAKES = Path(__file__).parent / "fakes"
MODULES = {"vllm": "vllm.model_executor.determinism.batch_invariant",
           "sglang": "sglang.srt.batch_invariant_ops.batch_invariant_ops"}
STRICT, COUNT = "batch-invariant", "batch-invariant,count"
try:
    hgemm.Handle(hgemm.DEVICE_HOST, mode=hgemm.Mode.BATCH_INVARIANT)
    CPU_IS_INVARIANT = True
except hgemm.Error:
    CPU_IS_INVARIANT = False


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class Engine:
    """In the process of a test."""

    def __init__(self, name):
        self.name, self.log = name, Lines()
        logging.getLogger().setLevel(logging.INFO)
        logging.getLogger().addHandler(self.log)
        self.plugin = importlib.import_module(f"hgemm.engines.{name}")

    @property
    def module(self):
        return importlib.import_module(MODULES[self.name])

    @property
    def layers(self):
        return importlib.import_module(self.plugin.ENGINE.layers)

    def load(self):
        self.plugin.load()
        return self.module

    def start(self):
        self.load()
        self.module.enable_batch_invariant_mode()

    def pretend_device(self):
        """The CPU may have no batch-invariant mode, in which nothing would start."""
        sys.modules["hgemm.engines._plugin"].Plugin.device = lambda plugin: "a device by its kernels"


def in_process(function, folder, name, setting, variables):
    """Returns what the function does, or the type and the text of its error."""
    def child(pipe):
        try:
            os.environ.update({"HGEMM_ENGINE": setting, "VLLM_BATCH_INVARIANT": "1", **variables})
            sys.path[:0] = [str(folder / name), str(folder)]
            importlib.invalidate_caches()
            pipe.send((None, None, function(Engine(name))))
        except BaseException as error:
            if not isinstance(error, (engines.Refused, SystemExit)) and "Refused" not in str(error):
                traceback.print_exc()
            pipe.send((type(error).__name__, str(error), None))
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=child, args=(sender,))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    finally:
        process.join()


class Case(unittest.TestCase):
    engine = "vllm"

    def run_in_process(self, function, setting=STRICT, edit=None, **variables):
        """edit: of the engine's files, what they have and what they get instead."""
        with tempfile.TemporaryDirectory() as work:
            folder = Path(shutil.copytree(FAKES, Path(work, "fakes")))
            for file, before, after in edit or ():
                path = next(folder.glob(f"{self.engine}/**/{file}"))
                text = path.read_text()
                self.assertIn(before, text)
                path.write_text(text.replace(before, after))
            return in_process(function, folder, variables.pop("engine", self.engine), setting, variables)

    def result(self, function, *arguments, **others):
        kind, text, value = self.run_in_process(function, *arguments, **others)
        self.assertIsNone(kind, text)
        return value

    def refused(self, function, *arguments, kind="Refused", **others):
        found, text, _ = self.run_in_process(function, *arguments, **others)
        self.assertEqual(found, kind, text)
        return text
