import sys
import leasehold

_, until, key, *flags = sys.argv
try:
    with leasehold.lock(key, *flags) as lock:
        print("granted", lock.token, flush=True)
        if until == "lost":
            lock.lost.wait()
            print("told", flush=True)
        else:
            sys.stdin.readline()
            print("told" if lock.lost.is_set() else "done", flush=True)
except (leasehold.Lost, leasehold.NotGranted) as e:
    print(type(e).__name__, flush=True)
