"""A lock on DynamoDB, held by the command leasehold. Needs Python 3.8, on Linux or macOS."""

import contextlib
import json
import os
import subprocess
import threading


class Lost(Exception):
    """The lock was lost before its block had ended: the work may be half done."""


class NotGranted(Exception):
    """Somebody else has the key (-n, -w), or leasehold failed and has said why."""


class Lock:
    def __init__(self, token):
        self.token = token  # grows with each grant: have what you write to compare it
        self.lost = threading.Event()  # set before anybody else can be granted the key


@contextlib.contextmanager
def lock(key, *flags):
    """Holds key for a block. flags are those of leasehold run."""
    ours, theirs = os.pipe()
    with os.fdopen(ours) as events:
        try:
            command = ["leasehold", "run", key, "--events", str(theirs), *flags, "--", "cat"]
            process = subprocess.Popen(  # of a session of its own: Ctrl-C is for this program
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[theirs], start_new_session=True)
        finally:
            os.close(theirs)
        with process:  # whose end closes stdin, which releases, and waits
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
    except BaseException:  # Ctrl-C, too
        process.terminate()
        raise


def _watch(process, held):
    process.stdout.read()  # until cat ends: it was stopped, or its stdin was closed
    if not process.stdin.closed:
        held.lost.set()
