"""Where things are, and a daemon for a test file."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TUNER_BUILD") or os.path.join(ROOT, "build")
PACKAGE = os.path.join(ROOT, "client", "python")
os.environ.setdefault("TUNER_LIBRARY", os.path.join(BUILD, "lib", "libtuner.so.0"))
sys.path[:0] = [PACKAGE, os.path.join(ROOT, "tests", "gpu")]

from harness import Daemon  # noqa: E402

TEMPLATES = os.path.join(ROOT, "tests", "integration", "templates")


def offline_daemon(test_class, *extra):
    """A tunerd without a GPU for a test class, with the shipped ops and `twice`, which compiles in a moment."""
    flags = ["--offline", "sm_90a", "--no-tune", "--workers", "2", *extra]
    daemon = Daemon(os.path.join(BUILD, "bin"), templates=[TEMPLATES], extra=flags)
    daemon.__enter__()
    test_class.addClassCleanup(daemon.__exit__, None, None, None)
    return daemon
