"""As SGLang loads plug-ins: an error of one is logged, and the engine goes on without it."""

import logging
from importlib.metadata import entry_points


def load_plugins():
    for point in entry_points(group="sglang.srt.plugins"):
        try:
            point.load()()
        except Exception:
            logging.getLogger(__name__).exception("Failed to execute general plugin: %s", point.name)
