/*
 * Queue. Two waiters are in the queue of a record, in the order in which their joins
 * arrive. A holder, which may be a waiter that was handed the key, ends its grant: it
 * hands the key to the waiter that was at the head when it sent the hand-over, or it
 * releases the key. A waiter learns of its grant by a read, and may leave the queue
 * before that read. So a hand-over, or a write that removes an entry, may arrive when the
 * queue has changed. The first holder acquires the key again, and takes it over from a
 * waiter that died.
 *
 * Promises: no two clients believe at the same time that they hold the key; a hand-over
 * goes to the waiter that joined first among those in the queue; a waiter that has left
 * the queue or acquired the key is handed the key only after a join that arrives later;
 * no client removes the entry of another client, except in a takeover, which erases the
 * whole queue.
 *
 * Bounds: 6 attempts, including the first grant and the two joins. Only one of the joins
 * may arrive twice. A lease of 3 ticks, and of 2 ticks after a hand-over, one of which is
 * the margin; observers' clocks are fast. Each waiter is in the queue once.
 * Abstracted: as in waiter.pml. The rules that need only one waiter are there, and apply
 * here unchanged. Left out, because waiter.pml has them: commits, renewals, a release
 * after a hand-over without a reply, and takeovers by waiters.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   IN_TURN: A hand-over names the head, and not one who stands anywhere in the queue.
 *   QUEUE_PLACE: Whoever takes its entry out of the queue names it at its place.
 */
#define CLIENTS 3
#define ATTEMPTS (6 + MORE)
#define LEASE 3
#define SHORT 2
#define TWICE 0
#define TRUSTED (SHORT - MARGIN)

/* Kinds of attempts that do not touch the grant. */
#define JOIN 5
#define LEAVE 6

/* A waiter's entry is the number of its join. A hand-over to the entry makes the grant with this number. */
#define isEntry(g) ((g) == 2 || (g) == 3)

byte first;  /* entry at the head of the queue; 0 if the queue is empty */
byte second; /* entry behind the head; 0 for none */
byte mine[ATTEMPTS + 1];   /* entry that the write removes */
byte place[ATTEMPTS + 1]; /* position of that entry: 1 or 2; 0 if the write removes none */
bool whole[ATTEMPTS + 1]; /* whether the write erases the whole queue */
bool gone[4];  /* whether the entry was removed, and no copy of its join can still arrive */

#define maySend (last < ATTEMPTS)
#define placeOf(e) (first == e -> 1 : (second == e -> 2 : 0))
#define at(i) (i == 1 -> first : second)
#define leaseOf(v) (kind[v] == HANDOVER -> SHORT : LEASE)
#define becomes(x) (kind[x] == JOIN || kind[x] == LEAVE -> cur : x)
#ifdef WITHOUT_QUEUE_PLACE
#define takesOut(x) (at(place[x]) != 0)
#else
#define takesOut(x) (at(place[x]) == mine[x])
#endif
#define alsoHolds(x) (place[x] == 0 || takesOut(x))
#ifdef WITHOUT_IN_TURN
#define isNext(x) (placeOf(grant[x]) != 0)
#else
#define isNext(x) (first == grant[x])
#endif
#define handsOver(x) (held(cur) && has(names[x], cur) && isNext(x))
#define landsInQueue(x) (kind[x] == JOIN && held(cur) && placeOf(grant[x]) == 0 || kind[x] == LEAVE)

#define shift(i) \
	first = (i == 1 -> second : first); \
	second = 0
#define onLanding(x) \
	if \
	:: kind[x] == JOIN && first == 0 -> first = grant[x] \
	:: kind[x] == JOIN && first != 0 -> second = grant[x] \
	:: kind[x] == HANDOVER -> \
		assert(first == grant[x]); /* another waiter was first */ \
		assert(!gone[grant[x]]); /* the key is handed to a waiter that has left */ \
		shift(1) \
	:: else \
	fi; \
	if \
	:: place[x] != 0 -> \
		assert(at(place[x]) == mine[x]); /* the entry of another waiter is removed */ \
		shift(place[x]) \
	:: else \
	fi; \
	if \
	:: whole[x] -> first = 0; second = 0 \
	:: else \
	fi; \
	if \
	:: place[x] != 0 -> gone[mine[x]] = (copies[mine[x]] == 0) \
	:: else \
	fi
#define alsoForget(x) mine[x] = 0; place[x] = 0; whole[x] = false

#include "record.h"

#define isGranted(e) (held(cur) && grant[cur] == e)

/* drop makes the client ignore the outcome of attempt x. */
inline drop(x) {
	hangup(x);
	left[x] = 0
}

/* end hands the key to the head of the queue, or releases it. */
inline end(v) {
	if
	:: first != 0 -> send(HANDOVER, first, only(v))
	:: true -> send(RELEASE, grant[v], only(v))
	fi;
	drop(a);
	a = 0
}

proctype Waiter(byte c; byte e) {
	byte a; /* attempt in flight */
	byte s; /* version that the record shows */
	byte p; /* position of the entry in the queue, as last read */

wait:	if
	:: atomic { !isGranted(e) && left[e] < TRUSTED -> /* a read that does not show the grant */
		left[e] = TRUSTED;
		goto wait }
	:: atomic { isGranted(e) -> s = cur } /* a read that shows the grant */
		if
		:: atomic { left[e] > 0 -> a = e; goto hold }
		:: atomic { maySend -> /* too little trust is left */
			send(GRANT, last, only(s));
			mine[a] = e;
			s = 0;
			goto take }
		:: atomic { maySend -> end(s); goto over } /* the caller has given up */
		fi
	:: atomic { maySend && !held(cur) -> p = placeOf(e) } /* the key is free */
		atomic { maySend -> send(GRANT, last, 0); mine[a] = e; place[a] = p; p = 0; goto take }
	:: atomic { maySend && placeOf(e) != 0 -> p = placeOf(e) } /* the caller has given up */
		atomic { maySend -> send(LEAVE, 0, 0); left[a] = 0; mine[a] = e; place[a] = p; p = 0 }
		if
		:: atomic { reply[a] > APPLIED -> hangup(a); goto wait } /* the position has changed: the waiter reads it again */
		:: atomic { hangup(a); goto over }
		fi
	fi;

take:	if
	:: atomic { reply[a] == APPLIED -> hangup(a); goto hold }
	:: atomic { reply[a] > APPLIED -> hangup(a); a = 0; goto wait }
	fi;

hold:	atomic { begin(a); tried[c] = 0; s = 0; a = 0 }
	if
	:: atomic { !believes(c) -> conf[c] = 0 }
	:: atomic { maySend && believes(c) -> s = cur; p = conf[c]; conf[c] = 0;
		if
		:: grant[s] == p -> end(s)
		:: else
		fi }
	fi;

over:	atomic { a = 0; s = 0; p = 0; tried[c] = 0 }
}

/* The first holder hands over or releases the key, and acquires it again. */
proctype Client(byte c) {
	byte a;

	atomic { begin(1) }
	if
	:: atomic { maySend && believes(c) -> conf[c] = 0; end(1) }
	:: atomic { !believes(c) -> conf[c] = 0 }
	fi;

look:	if
	:: atomic { maySend && held(cur) && cur != seen[c] ->
		seen[c] = cur;
		watch[c] = leaseOf(cur) - DRIFT;
		goto look }
	:: atomic { maySend && (!held(cur) || seen[c] != 0 && watch[c] == 0) ->
		send(GRANT, last, when(watch[c] == 0, deadVersions(c)));
		whole[a] = (watch[c] == 0);
		seen[c] = 0;
		watch[c] = 0 }
	fi;
	if
	:: atomic { reply[a] == APPLIED -> hangup(a); begin(a); a = 0 }
		atomic { !believes(c) -> conf[c] = 0 }
	:: atomic { reply[a] > APPLIED -> drop(a); a = 0 }
	fi
}

init {
	atomic {
		last = 3;
		kind[1] = GRANT;
		grant[1] = 1;
		left[1] = TRUST;
		conf[0] = 1;
		cur = 1;
		kind[2] = JOIN;
		grant[2] = 2;
		left[2] = TRUSTED;
		tried[1] = only(2);
		kind[3] = JOIN;
		grant[3] = 3;
		left[3] = TRUSTED;
		tried[2] = only(3);
		if
		:: copies[2] = 1; copies[3] = 1
		:: copies[2] = 2; copies[3] = 1
		:: copies[2] = 1; copies[3] = 2
		fi;
		run Network(); run Clock(); run Client(0);
		run Waiter(1, 2); run Waiter(2, 3)
	}
}
