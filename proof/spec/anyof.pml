/*
 * Any of two. A caller wants one of two keys, and is in the queue of each. The holders of
 * both keys may hand over to the caller at the same time. Or one may hand over while the
 * caller sends a grant for the other key, which is free. The caller holds the first key
 * whose grant it is shown. It leaves the other queue, and releases a grant that it was
 * handed there.
 *
 * Promises: no two clients believe at the same time that they hold a key; once the caller
 * is done with a key, and has had a reply, the key does not keep a grant of the caller's
 * entry; while the caller holds one key, no grant that it has sent is applied to the other
 * key. So a key without a holder that trusts it stays blocked for the lease of a hand-over
 * at most, not for a whole lease.
 *
 * Bounds: one of the two joins may arrive twice, all other requests once; each may be
 * late or lost. A lease of 3 ticks, and of 2 ticks after a hand-over, one of which is the
 * margin; observers' clocks are fast.
 * Abstracted: a grant of an entry counts as one grant until the record changes. So two
 * grants of one entry differ in the model, as their versions differ in the code. All other
 * clients that want a key are one process. The caller joins either queue at any time. A
 * holder may hand over or release. An attempt without a reply is resolved when no copy of
 * it is in flight; in the code, the next attempt names it instead. Left out, because
 * waiter.pml and queue.pml have them: renewals, commits, and the position in a queue.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   SECOND_GRANT: Whoever is shown grants of two keys gives one back.
 *   LEFT_GRANT: Whoever leaves a queue gives back the grant that its entry has become.
 *   ONE_UNANSWERED: Whoever waits for several keys asks for no other while a grant of its own has no answer.
 *   OWN_LOOK: Trust in a grant from one of several queues counts from a look at that key.
 */
#ifndef MORE
#define MORE 0
#endif
#define LEASE 3
#define SHORT 2
#define MARGIN 1
#define DRIFT 1
#define NONE 2 /* no key */
#define other(k) (1 - (k))

/* What a record shows: no holder, a grant of another client, or one of the following. */
#define FREE 0
#define OTHERS 1
#define ENTRY 2 /* the grant of the caller's entry */
#define OWN 3   /* a grant that the caller itself has sent */

/* State of the caller's leave or grant: 0 if none is in flight, SENT, or the result. */
#define SENT 1
#define APPLIED 2
#define REJECTED 3
#define GRANTED 4 /* rejected, and the record shows the grant of its entry */

byte who[2] = OTHERS;
bool stands[2]; /* the entry is in the queue */
byte life[2];   /* rest of the lease of a grant to the caller, by the fastest clock, in ticks */

byte joins[2];  /* number of copies of the join that may still arrive */
byte leave[2];
byte own[2];
bool back[2];   /* whether a release of the grant of the caller's entry may still arrive */
bool named[2];  /* whether the grant in flight names the grant that the record shows */

byte left[2];    /* how long the caller may trust a grant of its entry, in ticks */
byte ownLeft[2]; /* how long the caller may trust a grant that it has sent, in ticks */
byte holds = NONE;
bool joined[2]; /* whether the caller has joined the queue */
bool shown[2];  /* whether the last read has shown the grant of the caller's entry */
bool gone[2];   /* whether the entry was not in the queue when the leave arrived, and no copy of the join can still arrive */
bool done[2];   /* whether the caller is done: the entry cannot return, and the grant of the entry was released */

#define trusts(k) (who[k] == OWN -> ownLeft[k] > 0 : left[k] > 0)
#define believes(k) (holds == k && left[k] > 0)

/* change makes the record of k show another grant. Requests that name the earlier grant then fail. */
inline change(k, w) {
	who[k] = w;
	back[k] = false;
	named[k] = false;
	life[k] = (w == ENTRY -> SHORT - DRIFT : (w == OWN -> LEASE - DRIFT : 0))
}

/* All other clients that want key k: they hold it in turn, and take it over from dead holders. */
proctype Others(byte k) {
	do
	:: atomic { who[k] == OTHERS && stands[k] ->
		assert(!done[k]); /* the key is handed to a caller that has left */
		stands[k] = false;
		change(k, ENTRY) }
	:: atomic { who[k] == OTHERS -> change(k, FREE) }
	:: atomic { who[k] == FREE || who[k] > OTHERS && life[k] == 0 ->
		assert(!believes(k)); /* two believe */
		if
		:: who[k] > OTHERS -> stands[k] = false /* a takeover erases the queue */
		:: else
		fi;
		change(k, OTHERS) }
	od
}

proctype Network(byte k) {
	do
	:: atomic { joins[k] > 0 -> joins[k]--;
		if
		:: who[k] > FREE -> stands[k] = true
		:: true /* the join is lost, or the key is free */
		fi }
	:: atomic { leave[k] == SENT ->
		if
		:: stands[k] -> stands[k] = false; leave[k] = APPLIED
		:: !stands[k] -> leave[k] = (who[k] == ENTRY -> GRANTED : REJECTED)
		fi;
		gone[k] = (joins[k] == 0 && (leave[k] == GRANTED || who[k] != ENTRY)) }
	:: atomic { own[k] == SENT ->
		if
		:: who[k] == FREE || named[k] ->
			assert(holds != other(k)); /* the caller holds the other key */
			stands[k] = false;
			change(k, OWN);
			own[k] = APPLIED
		:: else -> own[k] = REJECTED
		fi }
	:: atomic { own[k] == SENT -> own[k] = REJECTED } /* the grant is lost: the caller may never know */
	:: atomic { back[k] -> change(k, FREE) }
	od
}

proctype Clock() {
	byte k;
	do
	:: d_step {
		k = 0;
		do
		:: k < 2 ->
			left[k] = (left[k] > 0 -> left[k] - 1 : 0);
			ownLeft[k] = (ownLeft[k] > 0 -> ownLeft[k] - 1 : 0);
			life[k] = (life[k] > 0 -> life[k] - 1 : 0);
			k++
		:: else -> break
		od;
		k = 0 }
	od
}

/* look reads the record of k once. */
inline look(k) {
	shown[k] = (who[k] == ENTRY);
	left[k] = (shown[k] -> left[k] : SHORT - MARGIN)
#ifdef WITHOUT_OWN_LOOK
	; left[other(k)] = SHORT - MARGIN
#endif
}

/* ask makes the caller send a grant for key k. */
inline ask(k) {
	own[k] = SENT;
	named[k] = (who[k] == ENTRY);
	ownLeft[k] = LEASE - MARGIN;
	pending = k
}

#ifdef WITHOUT_ONE_UNANSWERED
#define mayTurnTo(k) true
#else
#define mayTurnTo(k) (pending == NONE || pending == k)
#endif

proctype Caller() {
	byte pending = NONE; /* key for which the caller has sent a grant without a reply */
	byte k;

wait:	if
	:: k = 0
	:: k = 1
	fi;
	if
	:: atomic { pending == NONE && !joined[k] ->
		joined[k] = true;
		left[k] = SHORT - MARGIN;
		joins[k] = (k == 0 -> 2 + MORE : 1);
		goto wait }
	:: atomic { mayTurnTo(k) && (left[k] != SHORT - MARGIN || shown[k] != (who[k] == ENTRY)) -> look(k); goto wait }
	:: atomic { mayTurnTo(k) && who[k] == ENTRY && shown[k] && left[k] > 0 && own[k] != SENT -> holds = k; goto held }
	:: atomic { pending == NONE && own[k] != SENT && (who[k] == FREE || who[k] == ENTRY && shown[k]) -> ask(k); goto wait }
	:: atomic { pending == k && own[k] == APPLIED && who[k] == OWN && ownLeft[k] > 0 ->
		own[k] = 0;
		pending = NONE;
		left[k] = ownLeft[k];
		holds = k;
		goto held }
	:: atomic { pending == k && own[k] == APPLIED && (ownLeft[k] == 0 || who[k] != OWN) -> own[k] = 0; pending = NONE; goto wait }
	:: atomic { pending == k && own[k] == REJECTED -> own[k] = 0; pending = NONE; goto wait }
	:: atomic { pending == NONE -> k = NONE; goto over } /* the caller gives up */
	:: goto wait
	fi;

held:	atomic { k = other(k) }
	goto leaveIt;

over:	/* leaves both queues, one after the other */
	k = 0;
leaveIt: if
	:: atomic { joined[k] && shown[k] && who[k] == ENTRY ->
#ifndef WITHOUT_SECOND_GRANT
		back[k] = true;
#endif
		done[k] = (joins[k] == 0 && !stands[k]) }
	:: atomic { joined[k] && !(shown[k] && who[k] == ENTRY) -> leave[k] = SENT }
		if
		:: atomic { leave[k] == APPLIED || leave[k] == REJECTED -> done[k] = gone[k] }
		:: atomic { leave[k] == GRANTED ->
#ifndef WITHOUT_LEFT_GRANT
			back[k] = (who[k] == ENTRY);
#endif
			done[k] = gone[k] }
		:: skip /* no answer */
		fi
	:: !joined[k]
	fi;
	if
	:: holds == NONE && k == 0 -> k = 1; goto leaveIt
	:: else
	fi;
	if
	:: atomic { holds != NONE -> k = holds; holds = NONE;
		if
		:: who[k] == ENTRY || who[k] == OWN -> back[k] = true
		:: else
		fi }
	:: holds == NONE
	fi;
	k = 0
}

/* isLeft is true if the caller is done with key k, but its entry keeps a grant that no release will end. */
#define isLeft(k) (done[k] && who[k] == ENTRY && !back[k])
proctype Watcher() {
	if
	:: atomic { isLeft(0) -> assert(false) } /* a key keeps a grant that no client wants */
	:: atomic { isLeft(1) -> assert(false) }
	fi
}

init {
	atomic {
		run Others(0); run Others(1); run Network(0); run Network(1);
		run Clock(); run Caller(); run Watcher()
	}
}
