"""dynamo-dlm. It has no heartbeats and nothing that reads."""

import threading

import dynamo_dlm

from wire import Refusal, only


class Peer:
    _making = threading.Lock()  # boto3's default session is not for several threads at once

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
            # A wait is for ever: it has no limit.
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
        """Raises in a with block and tells whether the exception came out."""
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
