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
class Experts:
    """How an engine computes layers of experts in its batch-invariant mode: by a method of a class."""
    module: str                  # of the method
    signatures: dict[str, str]   # its name, "Class.method", and its arguments
    layers: tuple[str, str]      # the module of the class of such layers, and its name
    why_not: Callable[[Any], str | None]  # why a layer of that class is not served
    replacements: Callable[[Plugin, dict[str, Callable[..., Any]]], dict[str, Callable[..., Any]]]


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
    experts: Experts | None = None  # None: the engine computes them itself


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


def find(module: Any, name: str) -> Any:
    """A function, or "Class.method"; None if there is none."""
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def exchange(before: Any, after: Any, owner: Any = None) -> list[str]:
    """Wherever a module has it, by whatever name; owner: the class whose method it is. Returns the modules' names."""
    found = []
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType):
            for attribute, value in list(vars(module).items()):
                if value is before:
                    setattr(module, attribute, after)
                    found.append(name)
    if inspect.isclass(owner) and vars(owner).get(before.__name__) is before:
        setattr(owner, before.__name__, after)
        found.append(owner.__module__)
    return found


class _Replaced(NamedTuple):
    owner: Any  # a module or a class
    before: Callable[..., Any]
    after: Callable[..., Any]


class Plugin:
    """In one process, for one engine."""

    def __init__(self, engine: Engine, setting: Setting) -> None:
        self.engine, self.setting = engine, setting
        self.logger = logging.getLogger(f"{engine.name}.hgemm")  # so that the engine's settings of the log hold
        self.replaced: dict[str, _Replaced] = {}
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

    @staticmethod
    def differences(name: str, signatures: dict[str, str]) -> list[str]:
        """What is not as in the versions that are known, of functions of the module of this name."""
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            return [f"{name} cannot be imported: {error}"]
        found = []
        for function, signature in signatures.items():
            there = find(module, function)
            if not inspect.isfunction(there):
                found.append(f"{name} has no function {function}")
                continue
            actual = without_annotations(there)
            if signature and actual != signature:
                found.append(f"{function} has the arguments {actual}, not {signature}")
        return found

    def replace(self) -> None:
        """The engine's functions, in its module and in all that have imported them."""
        engine = self.engine
        if self.version.partition("+")[0] not in engine.versions:
            differences = self.differences(engine.module, {**engine.signatures, engine.starts: ""})
            if engine.experts:
                differences += self.differences(engine.experts.module, engine.experts.signatures)
            raise Refused(f"{engine.name} {self.version} is not known, {' and '.join(engine.versions)} are; "
                          f"what differs: {'; '.join(differences) or 'nothing that was looked at'}")
        self.take(engine.module, engine.signatures, engine.replacements, (engine.starts,))
        module = sys.modules[engine.module]
        start = getattr(module, self.engine.starts)

        @functools.wraps(start)
        def starts(*arguments: Any, **others: Any) -> Any:
            if self.replaced:  # before the engine registers them for operators of torch
                with self.refusing():
                    self.begin()
            return start(*arguments, **others)
        self.exchange_all()
        exchange(start, starts)

    def take(self, name: str, signatures: dict[str, str], replacements: Callable[..., Any],
             others: tuple[str, ...] = ()) -> None:
        """Prepares what exchange_all() does with functions of the module of this name. others: it has to have too."""
        differences = self.differences(name, {**signatures, **dict.fromkeys(others, "")})
        if differences:
            engine = self.engine
            raise Refused(f"{engine.name} {self.version} is not as {engine.name} {' and '.join(engine.versions)} "
                          f"should be: {'; '.join(differences)}")
        module = sys.modules[name]
        originals = {function: find(module, function) for function in signatures}
        for title, function in originals.items():
            if hasattr(function, "__wrapped__") or function.__code__.co_filename != module.__file__:
                file = inspect.unwrap(function).__code__.co_filename
                raise Refused(f"{title} is not {self.engine.name}'s own any more: another plug-in has replaced it"
                              f"{'' if file == module.__file__ else f', by one in {file}'}")
        for title, function in replacements(self, originals).items():
            owner = find(module, title.rpartition(".")[0]) if "." in title else module
            original = originals[title]
            self.replaced[title] = _Replaced(owner, original, functools.wraps(original)(function))

    def exchange_all(self) -> None:
        for name, (owner, before, after) in self.replaced.items():
            self.places.setdefault(name, set()).update(exchange(before, after, owner))

    # ---- When the engine starts its batch-invariant mode, on its device

    def begin(self) -> None:
        if self.begun:
            return
        for name, (owner, before, after) in self.replaced.items():
            if getattr(owner, before.__name__) is not after:
                raise Refused(f"another plug-in has replaced {name} after that of libhgemm")
        experts = self.engine.experts
        if experts and not experts.signatures.keys() & self.replaced.keys():
            # Not before, since processes that compute nothing would import them too.
            self.take(experts.module, experts.signatures, experts.replacements)
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
        for owner, before, after in self.replaced.values():
            exchange(after, before, owner)
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
