"""Adapter for python_dynamodb_lock."""

from datetime import timedelta

import boto3
from python_dynamodb_lock.python_dynamodb_lock import DynamoDBLock, DynamoDBLockClient, DynamoDBLockError

from wire import Refusal, attributes_in, attributes_out, only, period

HELD = ("ACQUIRE_TIMEOUT",)
LOST = ("LOCK_STOLEN", "LOCK_NOT_OWNED")


class Peer:
    def __init__(self):
        self._locks = {}

    def do_open(self, request):
        only(request, "table", "partitionKey", "sortKey", "ttl", "owner",
             "leaseMs", "heartbeatMs", "safeMs", "expiryMs", "pollMs")
        if "heartbeatMs" not in request:
            raise Refusal("unsupported", "its heartbeats cannot be turned off")
        named = {
            "partition_key_name": request.get("partitionKey"),
            "sort_key_name": request.get("sortKey"),
            "ttl_attribute_name": request.get("ttl"),
            "owner_name": request.get("owner"),
            "safe_period": period(request, "safeMs") if "safeMs" in request else None,
            "expiry_period": period(request, "expiryMs") if "expiryMs" in request else None,
        }
        self._poll = period(request, "pollMs") if "pollMs" in request else None
        self._client = DynamoDBLockClient(
            boto3.resource("dynamodb"),
            table_name=request["table"],
            lease_duration=period(request, "leaseMs"),
            heartbeat_period=period(request, "heartbeatMs"),
            **{k: v for k, v in named.items() if v is not None},
        )

    def do_acquire(self, request):
        only(request, "key", "sortValue", "waitMs", "attributes")
        try:
            lock = self._client.acquire_lock(
                request["key"],
                **({"sort_key": request["sortValue"]} if "sortValue" in request else {}),
                retry_period=self._poll,
                # None and 0 mean the default. The library checks the limit only after one attempt.
                retry_timeout=timedelta(microseconds=1000 * request.get("waitMs", 0) or 1),
                additional_attributes=attributes_in(request.get("attributes")),
                app_callback=lambda code, lock: None,
            )
        except DynamoDBLockError as e:
            raise refusal(e, HELD, "held")
        self._locks[request["id"]] = lock
        return {"record": record(lock)}

    def do_release(self, request):
        only(request, "bestEffort")
        try:
            self._locks[request["lock"]].release(best_effort=request.get("bestEffort", False))
        except DynamoDBLockError as e:
            raise refusal(e, LOST, "lost")

    def do_get(self, request):
        only(request, "key", "sortValue")
        # The library has no public method that reads a lock. It acquires locks with this
        # private one.
        lock = self._client._get_lock_from_dynamodb(request["key"], request.get("sortValue", "-"))
        return {} if lock is None else {"record": record(lock)}

    def do_held(self, request):
        only(request)
        return {"held": self._locks[request["lock"]].status == DynamoDBLock.LOCKED}

    def do_with(self, request):
        """Raises an exception in a with block, and returns whether it left the block."""
        only(request)
        try:
            with self._locks[request["lock"]]:
                raise ValueError("raised in the block")
        except ValueError:
            return {"raised": True}
        return {"raised": False}


def refusal(e, codes, kind):
    return Refusal(kind if e.code in codes else "failed", str(e))


def record(lock):
    return {
        "key": lock.partition_key,
        "sortValue": lock.sort_key,
        "owner": lock.owner_name,
        "version": lock.record_version_number,
        "leaseMs": round(lock.lease_duration * 1000),
        "expiresMs": lock.expiry_time * 1000,
        "attributes": attributes_out(lock.additional_attributes),
    }
