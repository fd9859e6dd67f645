"""The programs of the package as commands."""
import os
import sys


def _become(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    os.execv(path, [path, *sys.argv[1:]])


def ptxrace():
    _become("ptxrace")


def ptxrun():
    _become("ptxrun")
