"""Adapter for dynamo-dlm, which has no heartbeats and cannot read a lock."""

import threading

import dynamo_dlm

from wire import Refusal, only


class Peer:
    _making = threading.Lock()  # guards boto3's default session, which is not thread-safe

    def __init__(self):
        self._locks = {}

    def do_open(self, request):
        only(request, "table", "leaseMs")
        if request["leaseMs"] % 1000:
            raise Refusal("unsupported", "its leases are whole seconds")
        dynamo_dlm.DEFAULT_TABLE_NAME = request["table"]
        self._seconds = request["leaseMs"] // 1000

    def do_acquire(self, request):
        only(request, "key", "waitMs", "slots", "again")
        if "again" in request:
            lock = self._locks[request["again"]]
        else:
            # dynamo-dlm has no time limit for a wait: it fails at once or waits forever.
            lock = self._lock(request, concurrency=request.get("slots", 1),
                              wait_forever=request.get("waitMs", 0) > 0)
        self._locks[request["id"]] = lock
        try:
            lock.acquire()
        except dynamo_dlm.LockNotAcquiredError as e:
            raise Refusal("held", str(e))
        return {"record": {"key": request["key"], "version": lock._release_code,
                           "leaseMs": self._seconds * 1000, "slot": lock._concurrency_id}}

    def do_release(self, request):
        only(request)
        try:
            self._locks[request["lock"]].release()
        except dynamo_dlm.LockNotAcquiredError as e:
            raise Refusal("lost", str(e))

    def do_with(self, request):
        """Raises an exception in a with block, and returns whether it left the block."""
        only(request, "key")
        try:
            with self._lock(request):
                raise ValueError("raised in the block")
        except ValueError:
            return {"raised": True}
        return {"raised": False}

    def _lock(self, request, **options):
        with self._making:
            return dynamo_dlm.DynamoDbLock(request["key"], duration=self._seconds, **options)
