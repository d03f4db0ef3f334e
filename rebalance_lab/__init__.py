"""The public interface of rebalance-lab: what programs of yours may import.

`docs/python.md` has examples. The names are those of `rebalance_lab.public`, of which this module loads nothing before
one of them is used: in a wheel all our packages are below this one, and every process would load it.
"""

# With `python -m rebalance_lab`, what is imported here could come from the folder that the user stands in (`__main__`).
# Python itself has loaded importlib by then, and neither `__future__` nor `typing`.
import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rebalance_lab.public import *  # noqa: F403  # the one list of names is there
else:

    def __getattr__(name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        public = importlib.import_module("rebalance_lab.public")
        if name not in public.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(public.__all__)}")
        return getattr(public, name)
