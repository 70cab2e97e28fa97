/*
 * Any of two. A caller wants one of two keys, and stands in the queue of each. The
 * holders of both may hand over to it at once, or one may hand over while it asks
 * for the other, which is free. It holds the first grant that it is shown, leaves
 * the other queue, and gives back what it was handed there.
 *
 * Promises: no two believe in a key at the same time; once the caller has done with
 * a key, and was answered, the key is not left with a grant of its entry; while it
 * holds one key, no grant of its own is applied to the other, so that a key without
 * a believer is the matter of a hand-over's lease, and not of a whole one.
 *
 * Bounds: one of the two joins may arrive twice, all other requests once; each may be
 * late or lost. A lease of 3 ticks, that of a hand-over of 2, of which one is the margin;
 * observers' clocks are fast.
 * Abstracted: a grant of an entry is one write until the record changes, so that two
 * of one entry are told apart, as by their versions; all others who want a key are
 * one process; which queue is joined when is a free choice, and so is whether a key
 * is handed over or freed. An attempt without an answer is settled when no copy of it
 * is on its way, as by the next, which names it. Left out: what waiter.pml and
 * queue.pml have: renewals, commits, the place in a queue.
 *
 * Rules, each with the variant that goes without it:
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

/* What a record shows. */
#define FREE 0
#define OTHERS 1
#define ENTRY 2 /* the grant of the caller's entry */
#define OWN 3   /* a grant that the caller has sent */

/* A leave or a grant of the caller's: none is under way, it is, or how it was answered. */
#define SENT 1
#define APPLIED 2
#define REJECTED 3
#define GRANTED 4 /* rejected, and the record shows the grant of its entry */

byte who[2] = OTHERS;
bool stands[2]; /* the entry is in the queue */
byte life[2];   /* what is left of the lease of a grant to the caller, by the fastest clock */

byte joins[2];  /* copies that may still arrive */
byte leave[2];
byte own[2];
bool back[2];   /* a release of the grant of its entry may still arrive */
bool named[2];  /* the grant under way names the grant that the record shows */

byte left[2];    /* of trust in a grant of its entry */
byte ownLeft[2]; /* of trust in a grant of its own */
byte holds = NONE;
bool joined[2]; /* it was in the queue, for all that the caller knows */
bool shown[2];  /* the last look has shown the grant of its entry */
bool gone[2];   /* its entry was not in the queue when the leave arrived, and no copy of its join is to come */
bool done[2];   /* and the caller has had the answer, and given back what it showed */

#define trusts(k) (who[k] == OWN -> ownLeft[k] > 0 : left[k] > 0)
#define believes(k) (holds == k && left[k] > 0)

/* change: the record of k shows another grant. Whatever names the one before is in vain. */
inline change(k, w) {
	who[k] = w;
	back[k] = false;
	named[k] = false;
	life[k] = (w == ENTRY -> SHORT - DRIFT : (w == OWN -> LEASE - DRIFT : 0))
}

/* All others who want key k: they hold it in turn, and take over from the dead. */
proctype Others(byte k) {
	do
	:: atomic { who[k] == OTHERS && stands[k] ->
		assert(!done[k]); /* it is handed to one who has left */
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
		:: true /* it is lost, or the record is free */
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
			assert(holds != other(k)); /* it has the other */
			stands[k] = false;
			change(k, OWN);
			own[k] = APPLIED
		:: else -> own[k] = REJECTED
		fi }
	:: atomic { own[k] == SENT -> own[k] = REJECTED } /* it is lost: its caller may never know */
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

/* ask sends a grant of its own for k. */
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
	byte pending = NONE; /* the key of a grant of its own that has no answer */
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

over:	/* both, one after the other */
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

/* What the caller has done with is on its way back, or no longer its own. */
#define isLeft(k) (done[k] && who[k] == ENTRY && !back[k])
proctype Watcher() {
	if
	:: atomic { isLeft(0) -> assert(false) } /* a key is left with a grant that nobody wants */
	:: atomic { isLeft(1) -> assert(false) }
	fi
}

init {
	atomic {
		run Others(0); run Others(1); run Network(0); run Network(1);
		run Clock(); run Caller(); run Watcher()
	}
}
