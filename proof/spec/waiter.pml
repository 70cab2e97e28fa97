/*
 * Waiter. The holder of a key hands it to the waiter in the record's queue, in one write
 * that ends one grant and begins the other. Or the holder releases the key. The waiter
 * learns of its grant by a read. It renews the grant, replaces the grant by one that it
 * sends itself, or releases the grant. The waiter may also leave the queue, or take the key
 * over from a holder that died. The first holder and another client watch the key, to take
 * the key over. A commit of the waiter is in flight all the time.
 *
 * Promises: no two clients believe at the same time that they hold the key; no commit is
 * applied after another client was granted the key; no write under one grant of an entry
 * is applied to a second grant of that entry; a waiter that has left the queue or acquired
 * the key is handed the key only after a join that arrives later.
 *
 * Bounds: 6 attempts, including the first grant and the join, or 5 if the waiter leaves
 * the queue, or sends a grant itself. Only the join arrives twice. A lease of 3 ticks. The
 * lease of a hand-over is 2 ticks, or 4 ticks if the holder's lease is longer than the
 * waiter's. One tick of each lease is the margin; observers' clocks are fast. One waiter is
 * in the queue, once: the entry at index 0 is that of the waiter, or missing. The client
 * that only watches takes the key over once.
 * Abstracted: as in grant.pml; a client that removes its own entry knows the entry's
 * position. A read is one step: a later reply, or none, would leave less trust. An erased
 * queue has the same effect as a lost join or hand-over. Left out: repeated hand-overs; how
 * long a dead head of the queue blocks the key, because the lease in the record limits it.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   QUEUE_VERSION: A hand-over to the head writes a version of its own, and not the entry's.
 *   QUEUE_STAMP: Trust in a grant from the queue counts from before the last look that did not show it.
 *   SHORT_LEASE: A grant from the queue is trusted for the lease of the hand-over, until a renewal has landed.
 *   OWN_LEASE: A grant from the queue is trusted for no longer than the lease of the waiter that was handed it.
 *   QUEUE_SHOWN: Whoever was handed the key from the queue names the version that it was shown.
 *   QUEUE_TOKEN: A guard of a grant from the queue names the fencing token.
 *   OWN_GRANT: After a hand-over to the head without an answer, a release names the releaser's grant alone.
 *   QUEUE_HEAD: A hand-over to the head lands only where its entry stands first.
 *   OWN_ENTRY: A grant to a waiter in the queue removes its entry.
 */
#define CLIENTS 3
#define ATTEMPTS (6 + MORE)
#define LEASE 3
#define TWICE 0
#ifdef WITHOUT_SHORT_LEASE
#define TRUSTED TRUST
#elif defined(WITHOUT_OWN_LEASE)
#define TRUSTED (lent - MARGIN)
#else
#define TRUSTED ((lent < LEASE -> lent : LEASE) - MARGIN)
#endif
#define WAITER 1

/* Kinds of attempts that do not touch the grant. */
#define JOIN 5
#define LEAVE 6

/* The waiter's entry is the number of its join. A hand-over to the entry makes the grant with this number. */
#define ENTRY 2

byte lent; /* lease of a hand-over, in ticks */
bool inQueue;
byte turns; /* fencing token: how often the entry was granted the key */
byte turn;  /* token that the waiter was shown; 0 for none */
bool gone;  /* whether the waiter has removed its entry, and no copy of the join can still arrive */
bool since; /* whether another client was granted the key after the waiter was shown the token in turn */
bool acted; /* whether the waiter has left, released, or sent a grant itself; there is then one attempt less */

#define maySend (last < (acted -> ATTEMPTS - 1 : ATTEMPTS))
#define mayAct (last < ATTEMPTS - 1)

#define leaseOf(v) (v == ENTRY || kind[v] == HANDOVER -> lent : LEASE)
#define keeps(x) (kind[x] == JOIN || kind[x] == LEAVE)
#ifdef WITHOUT_QUEUE_VERSION
#define becomes(x) (keeps(x) -> cur : (kind[x] == HANDOVER -> ENTRY : x))
#else
#define becomes(x) (keeps(x) -> cur : x)
#endif
#ifdef WITHOUT_QUEUE_HEAD
#define isHead true
#else
#define isHead inQueue
#endif
#define handsOver(x) (held(cur) && has(names[x], cur) && isHead)
#define landsInQueue(x) (kind[x] == JOIN && held(cur) && !inQueue || kind[x] == LEAVE && inQueue)

/* A grant that the waiter sends names this version as a mark. No record shows this version. */
#define MINE only(0)
#define isMine(x) has(names[x], 0)
#ifdef WITHOUT_OWN_ENTRY
#define stays(x) (kind[x] == GRANT)
#else
#define stays(x) false
#endif
#define onLanding(x) \
	if \
	:: kind[x] == JOIN -> inQueue = true \
	:: kind[x] == LEAVE || kind[x] == GRANT && isMine(x) -> \
		inQueue = inQueue && stays(x); \
		gone = (copies[ENTRY] == 0) \
	:: kind[x] == GRANT && !isMine(x) -> since = since || turn != 0 \
	:: kind[x] == HANDOVER -> \
		assert(!gone); /* the key is handed to a waiter that has left */ \
		inQueue = false; \
		turns++ \
	:: kind[x] == RENEW -> assert(turn == turns) /* the renewal is applied to a later grant of the entry */ \
	:: else \
	fi

/* A write of a holder can have no effect if the record can never show a version that it
 * names. Once no more attempts are sent, the watched versions do not matter. The queue then
 * matters only if a hand-over may still arrive. */
#define sent(x) (copies[(x <= last -> x : 0)] > 0)
#define onItsWay(x) when(sent(x), only(x))
#define mayBeShown (only(cur) | onItsWay(3) | onItsWay(4) | onItsWay(5) | onItsWay(6) | onItsWay(7))
#define mayHand(x) (sent(x) && kind[(x <= last -> x : 0)] == HANDOVER)
#define queueCounts (maySend || mayHand(3) || mayHand(4) || mayHand(5) || mayHand(6) || mayHand(7))
#define isVain(x) (keeps(x) -> !queueCounts : kind[x] != GRANT && !landsAnyhow(x) && (names[x] & mayBeShown) == 0)
#define alsoTidy \
	if \
	:: !queueCounts -> inQueue = false; gone = false \
	:: else \
	fi; \
	if \
	:: !maySend -> seen[0] = 0; seen[1] = 0; seen[2] = 0; watch[0] = 0; watch[1] = 0; watch[2] = 0 \
	:: else \
	fi

#include "record.h"

#define isGranted (held(cur) && grant[cur] == ENTRY)

/* drop makes the client ignore the outcome of attempt x. */
inline drop(x) {
	hangup(x);
	left[x] = 0
}

/* see is like notice, for a client with the fastest clock. */
inline see(v) {
	seen[c] = v;
	watch[c] = leaseOf(v) - DRIFT
}

proctype Waiter(byte c) {
	byte a; /* attempt in flight */
	byte s;

wait:	if
	:: atomic { !isGranted && left[ENTRY] < TRUSTED -> /* a read that does not show the grant */
#ifdef WITHOUT_QUEUE_STAMP
		goto answered
#else
		left[ENTRY] = TRUSTED;
		goto wait
#endif
		}
	:: atomic { isGranted -> s = cur; turn = turns; since = false } /* a read that shows the grant */
		if
		:: atomic { left[ENTRY] > 0 -> a = ENTRY; goto hold }
		:: atomic { mayAct -> /* too little trust is left */
			acted = true;
			send(GRANT, last, tried[c] | only(s) | MINE);
			s = 0;
			goto take }
		:: atomic { mayAct -> /* the caller has given up */
			acted = true;
			send(RELEASE, ENTRY, only(s));
			drop(a);
			goto over }
		fi
	:: atomic { maySend && held(cur) && !isGranted && !has(tried[c], cur) && cur != seen[c] -> see(cur); goto wait }
	:: atomic { held(cur) && has(tried[c], cur) && left[cur] > 0 -> s = cur; a = s; goto hold } /* its own attempt */
	:: atomic { mayAct && (!held(cur) || has(tried[c], cur) || seen[c] != 0 && watch[c] == 0) ->
		acted = true;
		send(GRANT, last, tried[c] | when(watch[c] == 0, deadVersions(c)) | MINE);
		goto take }
	:: atomic { mayAct -> /* the caller has given up */
		acted = true;
		send(LEAVE, 0, 0);
		left[a] = 0 }
		if
		:: atomic { reply[a] > APPLIED ->
			s = SHOWN(reply[a]);
			hangup(a);
			if
			:: held(s) && grant[s] == ENTRY && maySend -> send(RELEASE, ENTRY, only(s)); drop(a)
			:: else
			fi;
			goto over }
		:: atomic { hangup(a); goto over }
		fi
	fi;
#ifdef WITHOUT_QUEUE_STAMP
answered: atomic { left[ENTRY] = TRUSTED; goto wait }
#endif

take:	if
	:: atomic { reply[a] == APPLIED -> s = a; hangup(a); goto hold }
	:: atomic { reply[a] > APPLIED -> hangup(a); a = 0; goto wait }
	:: atomic { tried[c] = tried[c] | only(a); hangup(a); a = 0; goto wait } /* no answer */
	fi;

hold:	atomic {
		seen[c] = 0;
		watch[c] = 0;
		begin(a);
		tried[c] = only(s);
		turn = (a == ENTRY -> turn : 0);
		a = 0 }
	do
	:: atomic { turn != 0 && a == 0 && believes(c) && maySend ->
		send(RENEW, ENTRY, tried[c]);
		tried[c] = tried[c] | only(a) }
	:: atomic { a != 0 && reply[a] == APPLIED && believes(c) -> hangup(a); conf[c] = a }
	:: atomic { !believes(c) -> goto over }
	:: atomic { maySend && believes(c) ->
		conf[c] = 0;
		if
		:: a != 0 -> drop(a)
		:: else
		fi;
		send(RELEASE, grant[s], tried[c]);
		goto over }
	od;

over:	atomic {
		conf[c] = 0;
		if
		:: a != 0 -> drop(a)
		:: else
		fi;
		a = 0;
		s = 0;
		tried[c] = 0;
		seen[c] = 0;
		watch[c] = 0 }
}

#ifdef WITHOUT_OWN_GRANT
#define ownGrant ENTRY
#else
#define ownGrant s
#endif

/* A client that holds the key by attempt 1, ends its grant, and acquires the key again. */
proctype Client(byte c) {
	byte a;
	byte s = 1;
	short n;
	goto hold;

look:	if
	:: atomic { maySend && held(cur) && cur != seen[c] -> see(cur); goto look }
	:: atomic { maySend && (!held(cur) || seen[c] != 0 && watch[c] == 0) ->
		send(GRANT, last, when(watch[c] == 0, deadVersions(c))) }
	fi;
	if
	:: atomic { reply[a] == APPLIED -> s = a; hangup(a); a = 0; goto hold }
	:: atomic { reply[a] > APPLIED -> drop(a); a = 0; goto look }
	fi;

hold:	atomic { seen[c] = 0; watch[c] = 0; begin(s) }
	if
	:: atomic { inQueue && maySend && conf[c] != 0 ->
		conf[c] = 0;
		send(HANDOVER, ENTRY, only(s));
		drop(a);
		if
		:: maySend -> /* no answer */
			n = only(s) | only(a);
			send(RELEASE, ownGrant, n);
			drop(a);
			n = 0
		:: true
		fi }
	:: atomic { !believes(c) -> conf[c] = 0 }
	:: atomic { maySend && conf[c] != 0 ->
		conf[c] = 0;
		send(RELEASE, s, only(s));
		drop(a) }
	fi;
	atomic { s = 0; a = 0; goto look }
}

/* A client that takes the key over once, and lets its lease expire. */
proctype Observer(byte c) {
	byte a;

look:	if
	:: atomic { maySend && held(cur) && cur != seen[c] -> see(cur); goto look }
	:: atomic { maySend && (!held(cur) || seen[c] != 0 && watch[c] == 0) ->
		send(GRANT, last, when(watch[c] == 0, deadVersions(c)));
		seen[c] = 0;
		watch[c] = 0 }
	fi;
	if
	:: atomic { reply[a] == APPLIED -> hangup(a); begin(a); a = 0 }
		atomic { !believes(c) -> conf[c] = 0 }
	:: atomic { reply[a] > APPLIED -> drop(a); a = 0 }
	fi
}

/* A commit of the waiter is applied at the worst moment at which its guard holds. */
#ifdef WITHOUT_QUEUE_TOKEN
#define guarded isGranted
#else
#define guarded (isGranted && turn == turns)
#endif
proctype Commit() {
	atomic { turn != 0 && since && guarded -> assert(false) /* another client was granted the key */ }
}

init {
	atomic {
		if
		:: lent = 2
		:: lent = 4
		fi;
		last = ENTRY;
		kind[1] = GRANT;
		grant[1] = 1;
		left[1] = TRUST;
		conf[0] = 1;
		cur = 1;
		kind[ENTRY] = JOIN;
		grant[ENTRY] = ENTRY;
		left[ENTRY] = TRUSTED;
		tried[WAITER] = only(ENTRY);
		if
		:: copies[ENTRY] = 1
		:: copies[ENTRY] = 2
		fi;
		run Network(); run Clock(); run Client(0);
		run Waiter(WAITER); run Observer(2); run Commit()
	}
}
