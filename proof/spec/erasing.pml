/*
 * Erasing. A waiter stands in the queue of a record while its grants are ended by
 * others: a client takes the key over from a holder that died, an operator breaks
 * a grant, a holder stores with its release that the work is done. Each erases the
 * queue in the write that ends the grant. The waiter joins again, under an entry of
 * its own, while its first join may still arrive.
 *
 * Promises: no two believe at the same time; no entry that stood in the queue when
 * another ended a grant is granted the key, but by a join that arrives later; the
 * waiter believes in either of its entries for no longer than others respect it.
 *
 * Bounds: 6 attempts, the first grant and the join among them, and a second join.
 * Each join may arrive twice, nothing else. A lease of 3 ticks, that of a hand-over
 * of 2, of which one is the margin; observers' clocks are fast. The operator breaks
 * one grant.
 * Abstracted: as in queue.pml. A broken grant is one that nobody believes in: its
 * holder is not asked to stop first, and what it does is not exclusion's matter.
 * `handed` and `noQueueUntil`, which a record may say of its queue, are advice, and
 * may say anything: that a key is released and not handed over, and that a waiter
 * does not join, are free choices here, and in waiter.pml and queue.pml.
 *
 * Rules, each with the variant that goes without it:
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

byte first;  /* the entry at the head of the queue; 0: nobody waits */
byte second; /* the one behind it */
bool whole[ATTEMPTS + 1];  /* this write erases the queue */
bool breaks[ATTEMPTS + 1]; /* it breaks a grant */
bool ends[ATTEMPTS + 1];   /* it ends a grant for others, who may be dead: none who waits now is to be granted the key */
bool gone[ATTEMPTS + 1];   /* the entry stood there then, and no copy of its join is to come */

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
		assert(!gone[grant[x]]); /* it stood in the queue when another ended a grant */ \
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

byte entry = 2; /* of the waiter, which it joined last: the number of that join */
byte former;    /* and before that; 0: none */
byte u;

/* unbelieve: the grant was broken. Nobody is to believe in it. */
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

/* drop: nobody asks any more what has become of it. */
inline drop(x) {
	hangup(x);
	left[x] = 0
}

/* erase: the write that was sent last ends a grant, and erases the queue. */
inline erase() {
	ends[a] = true;
	whole[a] = true
}

/* end hands the key to who stands first, releases it for anybody, or with a mark. */
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
	byte a; /* the attempt that is under way */
	byte s; /* the version that a record shows */

wait:	if
	:: atomic { !isSure(entry) || !isSure(former) -> /* a look that does not show the grant of one of its entries */
		left[entry] = (isGranted && grant[cur] == entry -> left[entry] : TRUSTED);
		if
		:: former != 0 && !(isGranted && grant[cur] == former) -> left[former] = TRUSTED
		:: else
		fi;
		goto wait }
	:: atomic { isGranted -> s = cur } /* one that does */
		if
		:: atomic { left[grant[s]] > 0 -> a = grant[s]; goto hold }
		:: atomic { maySend -> send(GRANT, last, only(s)); s = 0; goto take } /* too little trust is left */
		fi
	:: atomic { maySend && !held(cur) -> send(GRANT, last, 0); goto take } /* it is free */
	:: atomic { maySend && former == 0 && held(cur) && !isGranted && first != entry && second != entry -> /* it was erased */
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

/* The first holder gives the key up or dies, and another takes it over: one client plays both. */
proctype Client(byte c) {
	byte a;
	byte s; /* the attempt on which belief rests */

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
