/*
 * Queue. Two waiters stand in the queue of a record, in the order in which their
 * joins arrive. Whoever ends a grant, a waiter that was handed the key among
 * them, hands it to the one that stood first when it sent that, or releases it
 * for anybody. A waiter learns of its grant by a look, and may leave before. So
 * a hand-over, or a write that takes an entry out, may arrive when the queue has
 * moved on. The first holder seeks the key again, and takes it over from a
 * waiter that died.
 *
 * Promises: no two believe at the same time; a hand-over is to who came first of
 * those who are there; whoever has left the queue, or taken the key, is handed
 * nothing any more, but by a join that arrives later; nobody's entry is taken out
 * by another, but with the whole queue, by a takeover.
 *
 * Bounds: 6 attempts, the first grant and the two joins among them. One of the
 * joins may arrive twice, nothing else. A lease of 3 ticks, that of a hand-over
 * of 2, of which one is the margin; observers' clocks are fast. Each waiter
 * stands in the queue once.
 * Abstracted: as in waiter.pml, which has the rules that one waiter shows, and stand
 * here as they are. Left out: commits, renewals, a release after a hand-over that
 * had no answer, and takeovers by waiters, all of which it has.
 *
 * Rules, each with the variant that goes without it:
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

/* A waiter's entry is the number of its join: the grant that it is to have. */
#define isEntry(g) ((g) == 2 || (g) == 3)

byte first;  /* the entry at the head of the queue; 0: nobody waits */
byte second; /* the one behind it */
byte mine[ATTEMPTS + 1];   /* the entry that this write takes out, */
byte place[ATTEMPTS + 1]; /* and where: 1 or 2; 0: it takes none out */
bool whole[ATTEMPTS + 1]; /* it takes out all */
bool gone[4];  /* an entry was taken out, and no copy of its join is to come */

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
		assert(first == grant[x]); /* another came before */ \
		assert(!gone[grant[x]]); /* it is handed to one who has left */ \
		shift(1) \
	:: else \
	fi; \
	if \
	:: place[x] != 0 -> \
		assert(at(place[x]) == mine[x]); /* another's entry is taken out */ \
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

/* drop: nobody asks any more what has become of it. */
inline drop(x) {
	hangup(x);
	left[x] = 0
}

/* end hands the key to who stands first, or releases it for anybody. */
inline end(v) {
	if
	:: first != 0 -> send(HANDOVER, first, only(v))
	:: true -> send(RELEASE, grant[v], only(v))
	fi;
	drop(a);
	a = 0
}

proctype Waiter(byte c; byte e) {
	byte a; /* the attempt that is under way */
	byte s; /* the version that a record shows */
	byte p; /* the place that it has shown */

wait:	if
	:: atomic { !isGranted(e) && left[e] < TRUSTED -> /* a look that does not show it */
		left[e] = TRUSTED;
		goto wait }
	:: atomic { isGranted(e) -> s = cur } /* one that does */
		if
		:: atomic { left[e] > 0 -> a = e; goto hold }
		:: atomic { maySend -> /* too little trust is left */
			send(GRANT, last, only(s));
			mine[a] = e;
			s = 0;
			goto take }
		:: atomic { maySend -> end(s); goto over } /* the caller has given up */
		fi
	:: atomic { maySend && !held(cur) -> p = placeOf(e) } /* it was released for anybody */
		atomic { maySend -> send(GRANT, last, 0); mine[a] = e; place[a] = p; p = 0; goto take }
	:: atomic { maySend && placeOf(e) != 0 -> p = placeOf(e) } /* the caller has given up */
		atomic { maySend -> send(LEAVE, 0, 0); left[a] = 0; mine[a] = e; place[a] = p; p = 0 }
		if
		:: atomic { reply[a] > APPLIED -> hangup(a); goto wait } /* where does it stand by now? */
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

/* The first holder gives the key up, and seeks it again. */
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
