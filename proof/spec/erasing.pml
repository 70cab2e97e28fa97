/*
 * Erasing. A waiter is in the queue of a record while a grant ends in one of three ways: a
 * client takes the key over from a dead holder, an operator breaks the grant, or the
 * holder's release stores a mark that the work is done. In each case, the write that ends
 * the grant also erases the queue. The waiter joins again with a new entry, while its
 * first join may still arrive.
 *
 * Promises: no two clients believe at the same time that they hold the key; an entry that
 * was in the queue when a grant ended in one of these ways is granted the key only after
 * a join that arrives later; the waiter never trusts a grant of one of its two entries for
 * longer than other clients respect it.
 *
 * Bounds: 6 attempts, including the first grant and the two joins. Only the joins may
 * arrive twice. A lease of 3 ticks, and of 2 ticks after a hand-over, one of which is the
 * margin; observers' clocks are fast. The operator breaks one grant.
 * Abstracted: as in queue.pml. No client believes in a broken grant: a break does not wait
 * until the holder stops, so mutual exclusion does not cover that holder's work.
 * The attributes `handed` and `noQueueUntil` of a record are only advice about its queue,
 * and may have any value. So a holder may always release instead of handing over, and a
 * waiter may always choose not to join. The same holds in waiter.pml and queue.pml.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   TAKEOVER_ERASES: A takeover erases the queue.
 *   BREAK_ERASES: A break erases the queue.
 *   MARK_ERASES: A release that stores a mark erases the queue.
 */
#define CLIENTS 2
#define ATTEMPTS (6 + MORE)
#define LEASE 3
#define SHORT 2
#define TWICE 0
#define TRUSTED (SHORT - MARGIN)

/* A kind of attempt that does not touch the grant. */
#define JOIN 5

byte first;  /* entry at the head of the queue; 0 if the queue is empty */
byte second; /* entry behind the head; 0 for none */
bool whole[ATTEMPTS + 1];  /* whether the write erases the queue */
bool breaks[ATTEMPTS + 1]; /* whether the write breaks a grant */
bool ends[ATTEMPTS + 1];   /* whether the write must erase the queue: no entry in it may be granted the key later */
bool gone[ATTEMPTS + 1];   /* whether the entry was in the queue at such a write, and no copy of its join can still arrive */

#define maySend (last < ATTEMPTS)
#define leaseOf(v) (kind[v] == HANDOVER -> SHORT : LEASE)
#define becomes(x) (kind[x] == JOIN -> cur : x)
#define handsOver(x) (held(cur) && has(names[x], cur) && first == grant[x])
#define landsInQueue(x) (kind[x] == JOIN && held(cur) && first != grant[x] && second != grant[x] && second == 0)

#define onLanding(x) \
	if \
	:: kind[x] == JOIN && first == 0 -> first = grant[x] \
	:: kind[x] == JOIN && first != 0 -> second = grant[x] \
	:: kind[x] == HANDOVER -> \
		assert(!gone[grant[x]]); /* the entry should have been erased */ \
		first = second; \
		second = 0 \
	:: else \
	fi; \
	if \
	:: kind[x] == JOIN -> gone[grant[x]] = false \
	:: else \
	fi; \
	if \
	:: ends[x] && first != 0 -> gone[first] = (copies[first] == 0) \
	:: else \
	fi; \
	if \
	:: ends[x] && second != 0 -> gone[second] = (copies[second] == 0) \
	:: else \
	fi; \
	if \
	:: whole[x] -> first = 0; second = 0 \
	:: else \
	fi; \
	if \
	:: breaks[x] -> unbelieve(grant[x]) \
	:: else \
	fi
#define alsoForget(x) whole[x] = false; breaks[x] = false; ends[x] = false
#define isAskedFor(x) (copies[x] > 0 || cur == x || waits[x] || usedBy(x, 0) || usedBy(x, 1) || entry == x || former == x)

byte entry = 2; /* waiter's current entry: the number of its last join */
byte former;    /* waiter's earlier entry; 0 for none */
byte u;

/* unbelieve ends all trust in grant g, because the grant was broken. */
inline unbelieve(g) {
	u = 1;
	do
	:: u <= last -> left[u] = (grant[u] == g -> 0 : left[u]); u++
	:: else -> break
	od;
	u = 0
}

#include "record.h"

#define isGranted (held(cur) && grant[cur] != 0 && (grant[cur] == entry || grant[cur] == former))
#define isSure(e) (e == 0 || left[e] >= TRUSTED || isGranted && grant[cur] == e)

/* drop makes the client ignore the outcome of attempt x. */
inline drop(x) {
	hangup(x);
	left[x] = 0
}

/* erase makes the write that was sent last erase the queue. */
inline erase() {
	ends[a] = true;
	whole[a] = true
}

/* end hands the key to the head of the queue, releases it, or releases it with a done mark. */
inline end(v) {
	if
	:: first != 0 -> send(HANDOVER, first, only(v))
	:: true -> send(RELEASE, grant[v], only(v))
	:: true -> send(RELEASE, grant[v], only(v));
		erase();
#ifdef WITHOUT_MARK_ERASES
		whole[a] = false
#endif
	fi;
	drop(a);
	a = 0
}

proctype Waiter(byte c) {
	byte a; /* attempt in flight */
	byte s; /* version that the record shows */

wait:	if
	:: atomic { !isSure(entry) || !isSure(former) -> /* a read that does not show a grant of its entry */
		left[entry] = (isGranted && grant[cur] == entry -> left[entry] : TRUSTED);
		if
		:: former != 0 && !(isGranted && grant[cur] == former) -> left[former] = TRUSTED
		:: else
		fi;
		goto wait }
	:: atomic { isGranted -> s = cur } /* a read that shows such a grant */
		if
		:: atomic { left[grant[s]] > 0 -> a = grant[s]; goto hold }
		:: atomic { maySend -> send(GRANT, last, only(s)); s = 0; goto take } /* too little trust is left */
		fi
	:: atomic { maySend && !held(cur) -> send(GRANT, last, 0); goto take } /* the key is free */
	:: atomic { maySend && former == 0 && held(cur) && !isGranted && first != entry && second != entry -> /* the queue was erased */
		send(JOIN, last, 0);
		grant[a] = a;
		left[a] = TRUSTED;
		copies[a] = 1;
		if
		:: copies[a] = 2
		:: skip
		fi;
		former = entry;
		entry = a;
		waits[a] = false;
		a = 0;
		goto wait }
	fi;

take:	if
	:: atomic { reply[a] == APPLIED -> hangup(a); goto hold }
	:: atomic { reply[a] > APPLIED -> hangup(a); a = 0; goto wait }
	fi;

hold:	atomic { begin(a); s = 0; a = 0 }
	if
	:: atomic { !believes(c) -> conf[c] = 0 }
	:: atomic { maySend && believes(c) -> s = cur; a = conf[c]; conf[c] = 0;
		if
		:: held(s) && grant[s] == grant[a] -> end(s)
		:: else
		fi }
	fi;
	atomic { a = 0; s = 0; entry = 0; former = 0 }
}

/* The first holder ends its grant or dies, and another client takes the key over. This process models both clients. */
proctype Client(byte c) {
	byte a;
	byte s; /* attempt that the client trusts */

	atomic { begin(1) }
hold:	if
	:: atomic { maySend && believes(c) -> s = conf[c]; conf[c] = 0; end(s); s = 0 }
	:: atomic { !believes(c) -> conf[c] = 0 }
	fi;

look:	if
	:: atomic { maySend && held(cur) && cur != seen[c] ->
		seen[c] = cur;
		watch[c] = leaseOf(cur) - DRIFT;
		goto look }
	:: atomic { maySend && !held(cur) -> send(GRANT, last, 0); seen[c] = 0; watch[c] = 0 }
	:: atomic { maySend && held(cur) && seen[c] != 0 && watch[c] == 0 ->
		send(GRANT, last, deadVersions(c));
		erase();
#ifdef WITHOUT_TAKEOVER_ERASES
		whole[a] = false;
#endif
		seen[c] = 0;
		watch[c] = 0 }
	fi;
	if
	:: atomic { reply[a] == APPLIED -> hangup(a); begin(a); a = 0; goto hold }
	:: atomic { reply[a] > APPLIED -> drop(a); a = 0; goto look }
	fi
}

/* An operator breaks the grant that it has read. */
proctype Operator() {
	byte a;
	atomic { maySend && held(cur) ->
		send(RELEASE, grant[cur], only(cur));
		breaks[a] = true;
		erase();
#ifdef WITHOUT_BREAK_ERASES
		whole[a] = false;
#endif
		drop(a);
		a = 0 }
}

init {
	atomic {
		last = 2;
		kind[1] = GRANT;
		grant[1] = 1;
		left[1] = TRUST;
		conf[0] = 1;
		cur = 1;
		kind[2] = JOIN;
		grant[2] = 2;
		left[2] = TRUSTED;
		if
		:: copies[2] = 1
		:: copies[2] = 2
		fi;
		run Network(); run Clock(); run Client(0); run Waiter(1); run Operator()
	}
}
