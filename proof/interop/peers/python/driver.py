"""Runs one lock library behind the line protocol of interop/README.md.

    python driver.py python-dynamodb-lock | dynamo-dlm | dyndbmutex

Each request is answered on a new thread, so that other requests are answered
while one waits for a lock.
"""

import importlib
import json
import os
import sys
import threading

from wire import Refusal

PEERS = {
    "python-dynamodb-lock": "peer_pdl",
    "dynamo-dlm": "peer_dlm",
    "dyndbmutex": "peer_mutex",
}


class Driver:
    def __init__(self, new_adapter, answers):
        self._new_adapter = new_adapter
        self._first = None
        self._adapters = {}  # by the id of the open request that created the adapter
        self._answers = answers
        self._writing = threading.Lock()

    def serve(self, requests):
        for line in requests:
            request = json.loads(line)
            adapter = self._adapter(request)
            threading.Thread(target=self._answer, args=(adapter, request), daemon=True).start()

    def _adapter(self, request):
        if request["do"] != "open":
            return self._adapters.get(request.pop("client", None), self._first)
        adapter = self._adapters[request["id"]] = self._new_adapter()
        self._first = self._first or adapter
        return adapter

    def _answer(self, adapter, request):
        reply = {"id": request["id"]}
        try:
            do = getattr(adapter, "do_" + request["do"], None)
            if do is None:
                raise Refusal("unsupported", "this peer has no " + request["do"])
            reply.update(do(request) or {})
        except Refusal as e:
            reply["error"] = {"kind": e.kind, "message": str(e)}
        except BaseException as e:  # an exception of the library, returned unchanged
            reply["error"] = {"kind": "failed", "message": "%s: %s" % (type(e).__name__, e)}
        with self._writing:
            self._answers.write(json.dumps(reply) + "\n")
            self._answers.flush()


def main():
    # Output that the library prints goes to stderr, so that it cannot mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    Driver(importlib.import_module(PEERS[sys.argv[1]]).Peer, answers).serve(sys.stdin)
    os._exit(0)  # ends without releasing the held locks, like a process that dies


main()
