"""What the plug-ins have in common: when they act, what they check, and how they replace functions of an engine."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from types import ModuleType
from typing import Any, NamedTuple

from ._layers import watch

VARIABLE = "HGEMM_ENGINE"
MODES = ("off", "batch-invariant", "on")
SIGNS = "off, batch-invariant or on; batch-invariant,count or on,count"


class Refused(RuntimeError):
    """The library does not compute this in the engine's place."""


class Setting(NamedTuple):
    """count: what is refused is left to the engine, and counted; else it is an error."""
    mode: str = "off"
    count: bool = False

    @classmethod
    def of_environment(cls) -> Setting:
        text = os.environ.get(VARIABLE) or "off"
        mode, _, rest = text.partition(",")
        if mode not in MODES or rest not in ("", "count"):
            raise Refused(f"{VARIABLE}={text}: must be {SIGNS}")
        return cls(mode, rest == "count")


@dataclass(frozen=True)
class Engine:
    """An engine as it is in the versions that the plug-in knows."""
    name: str
    versions: tuple[str, ...]
    module: str                  # of its batch-invariant products
    signatures: dict[str, str]   # of the functions that are replaced
    starts: str                  # the function there that starts its batch-invariant mode
    layers: str                  # the module of its class LinearBase
    heads: str                   # and that of ParallelLMHead
    replacements: Callable[[Plugin, dict[str, Callable[..., Any]]], dict[str, Callable[..., Any]]]
    prepare: Callable[[str], dict[str, str]]  # checks the engine's settings for a mode; variables to be set if unset
    check: Callable[[], None] = lambda: None  # of settings that bypass the plug-in, when the engine's mode starts
    served_schemes: tuple[str, ...] = ()  # of quantized layers, if they multiply as half precision in the engine's mode
    own_kernels: dict[str, tuple[str, ...]] = field(default_factory=dict)  # classes of layers that bypass it; versions


_counts: Counter[str] = Counter()
_active: dict[str, Plugin] = {}
_lock = RLock()


def counts() -> dict[str, int]:
    """What was left to the engine, and how often; in a compiled graph it counts once. For HGEMM_ENGINE=...,count."""
    return dict(_counts)


def load(engine: Engine) -> None:
    """What the entry points call, in every process of the engine and perhaps several times in one."""
    setting = Setting.of_environment()
    if setting.mode == "off":
        return
    with _lock:
        if engine.name in _active:
            return
        plugin = Plugin(engine, setting)
        with plugin.refusing():
            others = [name for name in _active if name != engine.name]
            if others:
                raise Refused(f"the plug-in for {others[0]} is active in this process, and that for {engine.name} is "
                              "the second")
            variables = engine.prepare(setting.mode)
            plugin.enable() if setting.mode == "on" else plugin.replace()
            for name, value in variables.items():
                os.environ.setdefault(name, value)
            _active[engine.name] = plugin


def without_annotations(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    parameters = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def exchange(before: Any, after: Any) -> list[str]:
    """Wherever a module has it, by whatever name. Returns the modules' names."""
    found = []
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType):
            for attribute, value in list(vars(module).items()):
                if value is before:
                    setattr(module, attribute, after)
                    found.append(name)
    return found


class Plugin:
    """In one process, for one engine."""

    def __init__(self, engine: Engine, setting: Setting) -> None:
        self.engine, self.setting = engine, setting
        self.logger = logging.getLogger(f"{engine.name}.hgemm")  # so that the engine's settings of the log hold
        self.replaced: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
        self.places: dict[str, set[str]] = {}
        self.begun = False

    # ---- What is refused

    def refusing(self) -> _Refusing:
        """A block whose refusals are errors, or counted."""
        return _Refusing(self)

    def left(self, what: str, why: str) -> None:
        """This product or layer is not served."""
        text = f"{what} of {self.engine.name} is not served by libhgemm: {why}"
        if not self.setting.count:
            raise Refused(f"{text}. {VARIABLE}={self.setting.mode},count leaves it to {self.engine.name}")
        _counts[f"{what}: {why}"] += 1
        if _counts[f"{what}: {why}"] == 1:
            self.logger.warning("hgemm: %s; it is left to %s", text, self.engine.name)

    # ---- Before the engine starts

    @property
    def version(self) -> str:
        try:
            return importlib.metadata.version(self.engine.name)
        except importlib.metadata.PackageNotFoundError as error:
            raise Refused(f"{self.engine.name} has no metadata that tell its version") from error

    def enable(self) -> None:
        """Not batch-invariant: the library serves torch's own products."""
        import hgemm.torch
        try:
            hgemm.torch.enable(strict=not self.setting.count)
        except RuntimeError as error:
            raise Refused(str(error)) from error
        self.logger.info("hgemm: libhgemm computes torch's products of float16 and bfloat16 CUDA tensors in %s %s",
                         self.engine.name, self.version)

    def differences(self) -> tuple[ModuleType | None, list[str]]:
        """The engine's module, and what is not as in the versions that are known."""
        try:
            module = importlib.import_module(self.engine.module)
        except ImportError as error:
            return None, [f"{self.engine.module} cannot be imported: {error}"]
        found = []
        for name, signature in {**self.engine.signatures, self.engine.starts: ""}.items():
            function = getattr(module, name, None)
            if not inspect.isfunction(function):
                found.append(f"{self.engine.module} has no function {name}")
                continue
            actual = without_annotations(function)
            if signature and actual != signature:
                found.append(f"{name} has the arguments {actual}, not {signature}")
        return module, found

    def replace(self) -> None:
        """The engine's functions, in its module and in all that have imported them."""
        known = " and ".join(self.engine.versions)
        module, differences = self.differences()
        if self.version.partition("+")[0] not in self.engine.versions:
            raise Refused(f"{self.engine.name} {self.version} is not known, {known} are; "
                          f"what differs: {'; '.join(differences) or 'nothing that was looked at'}")
        if differences or module is None:
            raise Refused(f"{self.engine.name} {self.version} is not as {self.engine.name} {known} should be: "
                          f"{'; '.join(differences)}")
        originals = {name: getattr(module, name) for name in self.engine.signatures}
        for name, function in originals.items():
            if hasattr(function, "__wrapped__") or function.__code__.co_filename != module.__file__:
                file = inspect.unwrap(function).__code__.co_filename
                raise Refused(f"{name} is not {self.engine.name}'s own any more: another plug-in has replaced it"
                              f"{'' if file == module.__file__ else f', by one in {file}'}")
        for name, function in self.engine.replacements(self, originals).items():
            self.replaced[name] = originals[name], functools.wraps(originals[name])(function)
        start = getattr(module, self.engine.starts)

        @functools.wraps(start)
        def starts(*arguments: Any, **others: Any) -> Any:
            if self.replaced:  # before the engine registers them for operators of torch
                with self.refusing():
                    self.begin(module)
            return start(*arguments, **others)
        self.exchange_all()
        exchange(start, starts)

    def exchange_all(self) -> None:
        for name, (before, after) in self.replaced.items():
            self.places.setdefault(name, set()).update(exchange(before, after))

    # ---- When the engine starts its batch-invariant mode, on its device

    def begin(self, module: ModuleType) -> None:
        if self.begun:
            return
        for name, (_, after) in self.replaced.items():
            if getattr(module, name) is not after:
                raise Refused(f"another plug-in has replaced {name} after that of libhgemm")
        self.exchange_all()
        device = self.device()
        self.engine.check()
        watch(self)
        prefix = f"{self.engine.name}."
        places = "; ".join(f"{name} in {', '.join(sorted(place.removeprefix(prefix) for place in found))}"
                           for name, found in self.places.items())
        self.logger.info("hgemm: libhgemm computes the batch-invariant products of %s %s, on %s, %s. Replaced: %s",
                         self.engine.name, self.version, device,
                         "and counts what it leaves" if self.setting.count else "strictly", places)
        self.begun = True

    def device(self) -> str:
        """Its name, and by which kernels the library serves it. Refused if it has none that are batch-invariant."""
        import torch

        import hgemm
        on_gpu = torch.cuda.is_available()
        index = torch.cuda.current_device() if on_gpu else hgemm.DEVICE_HOST
        name = torch.cuda.get_device_name(index) if on_gpu else "the CPU"
        x = torch.empty(1, 8, dtype=torch.bfloat16, device="cuda" if on_gpu else "cpu")
        try:
            with hgemm.Handle(index, mode=hgemm.Mode.BATCH_INVARIANT, workspace_bytes=0) as handle:
                told = handle.explain(hgemm.arguments(x, x.t(), x[:, :1]))
        except hgemm.Error as error:
            raise Refused(f"on {name} there are no batch-invariant products: {error}") from error
        backend = dict(part.split("=", 1) for part in told.split() if "=" in part).get("backend", "?")
        return f"{name} by its kernels for {backend}"

    def restore(self) -> None:
        for before, after in self.replaced.values():
            exchange(after, before)
        self.replaced.clear()


class _Refusing:
    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if not isinstance(error, Refused):
            return False
        plugin = self.plugin
        if plugin.setting.count:
            plugin.restore()
            _counts[str(error)] += 1
            plugin.logger.warning("hgemm: %s. All is left to %s", error, plugin.engine.name)
            return True
        return False
