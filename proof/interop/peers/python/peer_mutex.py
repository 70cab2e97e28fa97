"""Adapter for dyndb-mutex, which has no heartbeats and does not wait, so the adapter polls."""

import os
import threading
import time

from dyndbmutex.dyndbmutex import DynamoDbMutex, NO_HOLDER

from wire import Refusal, only


class Peer:
    _making = threading.Lock()  # guards boto3's default session, which is not thread-safe

    def __init__(self):
        self._locks = {}

    def do_open(self, request):
        only(request, "table", "owner", "leaseMs", "pollMs")
        os.environ["DD_MUTEX_TABLE_NAME"] = request["table"]
        self._lease = request["leaseMs"]
        self._owner = request.get("owner")
        self._poll = request.get("pollMs", 100) / 1000

    def do_acquire(self, request):
        only(request, "key", "waitMs", "owner", "again")
        mutex = self._locks[request["again"]] if "again" in request else self._mutex(request)
        until = time.monotonic() + request.get("waitMs", 0) / 1000
        while not mutex.lock():
            if time.monotonic() + self._poll > until:
                raise Refusal("held", "lock() returned False")
            time.sleep(self._poll)
        self._locks[request["id"]] = mutex
        return {"record": {"key": request["key"], "owner": mutex.holder, "leaseMs": self._lease}}

    def do_release(self, request):
        only(request, "key", "owner")
        # A request without a lock releases by a new object that only has the owner's name.
        mutex = self._locks[request["lock"]] if "lock" in request else self._mutex(request)
        mutex.release()
        if mutex.is_locked():
            raise Refusal("lost", "is_locked() after release()")

    def do_get(self, request):
        only(request, "key")
        item = self._mutex(request).get_raw_lock().get("Item")
        if item is None:
            return {}
        return {"record": {"key": item["lockname"], "owner": item["holder"],
                           "released": item["holder"] == NO_HOLDER, "expiresMs": int(item["expire_ts"])}}

    def do_held(self, request):
        only(request)
        return {"held": self._locks[request["lock"]].is_locked()}

    def do_with(self, request):
        """Raises an exception in a with block, and returns whether it left the block."""
        only(request, "key")
        try:
            with self._mutex(request):
                raise ValueError("raised in the block")
        except ValueError:
            return {"raised": True}
        return {"raised": False}

    def _mutex(self, request):
        with self._making:
            return DynamoDbMutex(request["key"], holder=request.get("owner", self._owner), timeoutms=self._lease)
