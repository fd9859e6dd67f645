"""Layers whose products the plug-in never sees, since they call other kernels of the engine."""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._plugin import Plugin

UNQUANTIZED = ("UnquantizedLinearMethod", "UnquantizedEmbeddingMethod")


def watch(plugin: Plugin) -> None:
    """Tells of those that there are, and of others as they are made."""
    engine = plugin.engine
    rules: dict[Any, Callable[[Any], str | None]] = {
        _required(engine.layers, "LinearBase"): functools.partial(why_not, plugin)}
    try:
        heads = getattr(importlib.import_module(engine.heads), "ParallelLMHead", None)
    except ImportError:  # then no model of the engine has one
        heads = None
    if heads is not None:
        rules[heads] = functools.partial(why_not, plugin)
    if engine.experts:
        rules[_required(*engine.experts.layers)] = engine.experts.why_not
    bases = tuple(rules)

    def tell(layer: Any, name: str | None) -> None:
        why = next(rule for base, rule in rules.items() if isinstance(layer, base))(layer)
        if why:
            plugin.left(f"layer {name or getattr(layer, 'layer_name', type(layer).__name__)}", why)
    for base in bases:
        _watch_class(base, tell)
    for layer in gc.get_objects():
        if issubclass(type(layer), bases):
            tell(layer, getattr(layer, "prefix", None))


def _required(module: str, name: str) -> Any:
    found = getattr(importlib.import_module(module), name, None)
    if found is None:
        from ._plugin import Refused
        raise Refused(f"{module} has no class {name}")
    return found


def _watch_class(base: Any, tell: Callable[[Any, str | None], None]) -> None:
    make = base.__init__

    @functools.wraps(make)
    def init(layer: Any, *arguments: Any, **others: Any) -> None:
        make(layer, *arguments, **others)
        tell(layer, inspect.signature(make).bind(layer, *arguments, **others).arguments.get("prefix"))
    base.__init__ = init


def why_not(plugin: Plugin, layer: Any) -> str | None:
    import torch
    engine = plugin.engine
    for kind in type(layer).__mro__:
        if plugin.version.partition("+")[0] in engine.own_kernels.get(kind.__name__, ()):
            return f"{kind.__name__} calls kernels of its own, which may depend on the batch"
    method = getattr(layer, "quant_method", None)
    if method is None:
        return None
    if type(method).__name__ not in UNQUANTIZED:
        scheme = getattr(layer, "scheme", None)
        if type(scheme).__name__ in engine.served_schemes and getattr(scheme, "use_batch_invariant", False):
            return None
        return f"its weights are quantized, by {type(method).__name__}"
    dtype = getattr(layer, "params_dtype", None)
    return None if dtype in (None, torch.float16, torch.bfloat16) else f"its weights are {dtype}"
