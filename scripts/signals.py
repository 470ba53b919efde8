"""Signals for the tests as they are by default.

Whoever starts the tests by nohup, or in the background of a script, has some signals ignored, and
all processes inherit that: a test that sends one to a program would wait for its end in vain.
"""

import signal

STOPPING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""What nohup and shells have ignored."""


def pass_on_defaults() -> None:
    """From now on processes start with the default of each signal in `STOPPING`.

    What is ignored in this process stays without effect here: a handler is not inherited.
    """
    for number in STOPPING:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)
