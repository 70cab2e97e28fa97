"""A lock on DynamoDB, held by the command leasehold. Needs Python 3.8, on Linux or macOS."""

import contextlib
import json
import os
import subprocess
import threading


class Lost(Exception):
    """The lock was lost before the end of its block, so the work may be half done."""


class NotGranted(Exception):
    """The key is held by another client (-n, -w), or leasehold failed and printed its error."""


class Lock:
    def __init__(self, token):
        self.token = token  # fencing token, higher for each grant: targets of writes can compare it
        self.lost = threading.Event()  # set before another client can be granted the key


@contextlib.contextmanager
def lock(key, *flags):
    """Holds key during a with block. flags are the flags of leasehold run."""
    ours, theirs = os.pipe()
    with os.fdopen(ours) as events:
        try:
            command = ["leasehold", "run", key, "--events", str(theirs), *flags, "--", "cat"]
            process = subprocess.Popen(  # in a new session, so that Ctrl-C reaches only this program
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[theirs], start_new_session=True)
        finally:
            os.close(theirs)
        with process:  # at its end: closes stdin, so that leasehold releases the lock, and waits for it
            held = Lock(_granted(events, process))
            thread = threading.Thread(target=_watch, args=(process, held), daemon=True)
            thread.start()
            try:
                yield held
            finally:
                process.stdin.close()
                thread.join()
        if process.returncode != 0:
            raise Lost(key)


def _granted(events, process):
    try:
        for line in events:
            event = json.loads(line)
            if event["event"] == "granted":
                return event["token"]
        raise NotGranted(f"leasehold ended with {process.wait()}")
    except BaseException:  # includes the KeyboardInterrupt of Ctrl-C
        process.terminate()
        raise


def _watch(process, held):
    process.stdout.read()  # returns when cat ends: leasehold has stopped it, or its stdin was closed
    if not process.stdin.closed:
        held.lost.set()
