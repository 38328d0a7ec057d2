"""Settings for all tests: no deadlines, since machines differ and are busy; and Ctrl-C as a terminal has it."""

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("STACKTAP_HYPOTHESIS", "default"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts its background jobs so, and every command under test would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
