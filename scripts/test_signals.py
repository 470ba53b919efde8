"""A test that waited for the end of a program by SIGHUP never ended below nohup."""

import signal
import subprocess
import unittest

from signals import STOPPING, pass_on_defaults


class Signals(unittest.TestCase):
    def test_signals_that_are_ignored_here_end_what_is_started(self) -> None:
        before = {number: signal.signal(number, signal.SIG_IGN) for number in STOPPING}
        try:
            pass_on_defaults()
            for number in STOPPING:
                signal.raise_signal(number)
                ended = subprocess.run(["sh", "-c", f"kill -{int(number)} $$"], check=False)
                self.assertEqual(ended.returncode, -number)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


if __name__ == "__main__":
    unittest.main()
