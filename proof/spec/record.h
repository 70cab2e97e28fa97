/*
 * One record of the lock table, the network in front of it, and time.
 *
 * An attempt is a number, and that number is the version it writes. So the
 * record is known by the attempt that landed last: that says whose grant it
 * shows, and whether it is released. 0: there is no record.
 *
 * The network carries a request never (it is lost before it is applied), at
 * once, or long after its sender has given it up; TWICE requests of a run, any
 * of them, arrive a second time. The reply to any copy may be the one that
 * arrives, late or never: a client may stop waiting for it at any moment.
 *
 * Time goes on in ticks, between any two steps. Nothing has a date: an attempt
 * counts down what is left of the trust that it is good for, an observer what
 * is left of the lease of the version that it watches. A process that is
 * suspended is one that takes no step while time goes on, and one that has
 * crashed takes none any more. Two clocks differ by no more than DRIFT ticks in
 * a lease: an observer's may be that fast.
 */
#ifndef MORE
#define MORE 0 /* attempts, by whoever has the time */
#endif
#ifndef LEASE
#define LEASE 2
#endif
#ifndef TWICE
#define TWICE 1
#endif
#define DRIFT 1

#ifdef WITHOUT_MARGIN
#define MARGIN 0
#else
#define MARGIN DRIFT
#endif
#ifndef TRUST
#define TRUST (LEASE - MARGIN)
#endif

/* Kinds of attempts. */
#define GRANT 1
#define RENEW 2
#define RELEASE 3
#define HANDOVER 4

/* Replies: none yet, applied, or the condition failed and the record showed
 * this version. */
#define NONE 0
#define APPLIED 1
#define SHOWS(v) ((v) + 2)
#define SHOWN(r) ((r) - 2)

#ifndef SET
#define SET short /* of attempts */
#endif
#define only(v) (1 << (v))
#define when(test, set) ((test) * (set))
#define has(set, v) (((set) >> (v)) & 1)

byte cur;             /* the attempt that landed last */
byte last;            /* the attempt that was sent last */
byte twice = TWICE;   /* requests that may arrive a second time yet */
byte conf[CLIENTS];   /* the attempt on which this client's belief rests; 0: it has none */
byte seen[CLIENTS];   /* the version of another that it watches */
byte watch[CLIENTS];  /* what is left of the lease of that version */
SET tried[CLIENTS]; /* its own attempts that have had no answer */

byte kind[ATTEMPTS + 1];
byte grant[ATTEMPTS + 1];  /* the grant that the record shows once it has landed */
SET names[ATTEMPTS + 1]; /* the versions that its condition names */
byte copies[ATTEMPTS + 1]; /* that may still arrive */
byte left[ATTEMPTS + 1];   /* of the trust that it is good for */
byte reply[ATTEMPTS + 1];
bool waits[ATTEMPTS + 1];  /* its client still listens */

#ifdef HANDS_OVER
SET ends[ATTEMPTS + 1]; /* the grants that a hand-over or release may end */
#endif
#ifdef SHORTER
bool brief[ATTEMPTS + 1]; /* it writes a lease that is shorter by one */
#define leaseOf(v) (LEASE - brief[v])
#elif !defined(leaseOf)
#define leaseOf(v) LEASE
#endif

#define held(v) ((v) != 0 && kind[v] != RELEASE)

/* Whoever asks a holder makes it look at its clocks first. */
#ifdef WITHOUT_LOOK
#define believes(k) (conf[k] != 0)
#else
#define believes(k) (conf[k] != 0 && left[conf[k]] > 0)
#endif

#ifndef onSend
#define onSend(x) skip
#endif
/* send sends a write once, as attempt a. Its condition names versions n; that
 * of a holder's write names grant g as well. */
inline send(k, g, n) {
	last++;
	a = last;
	kind[a] = k;
	grant[a] = g;
	names[a] = n;
	left[a] = TRUST;
	waits[a] = true;
	onSend(a);
	if
	:: copies[a] = 1
	:: twice > 0 -> copies[a] = 2; twice--
	fi
}

/* hangup: nobody waits for the reply any more. */
inline hangup(x) {
	waits[x] = false;
	reply[x] = NONE
}

/* begin is the moment from which client c believes, by attempt x. */
inline begin(x) {
	conf[c] = x;
	assert(left[x] == 0 || c == 0 || !believes(0));
#if CLIENTS > 1
	assert(left[x] == 0 || c == 1 || !believes(1));
#endif
#if CLIENTS > 2
	assert(left[x] == 0 || c == 2 || !believes(2));
#endif
#if CLIENTS > 3
	assert(left[x] == 0 || c == 3 || !believes(3));
#endif
	skip
}

/* sight is what is left of the lease of a version that is seen for the first time. */
#ifdef WITHOUT_FIRST_SIGHT
byte asked[CLIENTS];
#define sight(v) asked[c]
#elif !defined(sight)
#define sight(v) leaseOf(v)
#endif
#ifndef beforeSight
#define beforeSight skip
#endif
#ifdef WITHOUT_RESTART
#define isSeen(v, k) (seen[k] != 0 && grant[seen[k]] == grant[v])
#else
#define isSeen(v, k) (seen[k] == v)
#endif

/* notice what a reply shows of another: the age of a version begins at first
 * sight, and a changed version starts again. */
inline notice(v) {
	if
	:: isSeen(v, c) -> seen[c] = v
	:: else ->
		seen[c] = v;
		beforeSight;
		if
		:: watch[c] = sight(v)
		:: sight(v) > 0 -> watch[c] = sight(v) - DRIFT
		fi
	fi
}

/* A takeover names the version that stood still, so that a renewal defeats it. */
#ifdef WITHOUT_TAKEOVER
#define shows(x) has(names[x], cur)
#define deadVersions(k) 0
#elif defined(WITHOUT_STOOD_STILL)
#define shows(x) (has(names[x], cur) || has(names[x], grant[cur]))
#define deadVersions(k) when(seen[k] != 0, only(grant[seen[k]]))
#else
#define shows(x) has(names[x], cur)
#define deadVersions(k) when(seen[k] != 0, only(seen[k]))
#endif

/* lands says whether the condition of attempt x holds. A second copy of a grant
 * finds its own grant id, also in the record that was released since. */
#ifdef WITHOUT_OWN_COPY
#define isOwnCopy(x) false
#else
#define isOwnCopy(x) (cur != 0 && grant[cur] == grant[x])
#endif
#ifdef WITHOUT_DEAD_FINAL
#define landsOnDead(x) (cur != 0 && kind[x] == RENEW)
#define landsAnyhow(x) (kind[x] == RENEW)
#elif defined(WITHOUT_QUEUE_SHOWN)
#define landsOnDead(x) false
#define landsAnyhow(x) (kind[x] == RENEW)
#elif defined(WITHOUT_MARK_VERSION)
#define landsOnDead(x) false
#define landsAnyhow(x) (kind[x] == RELEASE)
#else
#define landsOnDead(x) false
#define landsAnyhow(x) false
#endif
#ifdef HANDS_OVER
#define isGrantOf(x) has(ends[x], grant[cur])
#ifdef WITHOUT_PREDECESSOR
#define handsOver(x) true
#elif !defined(handsOver)
#define handsOver(x) (held(cur) && has(ends[x], grant[cur]) && has(names[x], cur))
#endif
#else
#define isGrantOf(x) (grant[cur] == grant[x])
#ifndef handsOver
#define handsOver(x) false
#endif
#endif
#ifndef landsInQueue
#define landsInQueue(x) false
#endif
#ifndef becomes
#define becomes(x) x
#endif
#ifndef onLanding
#define onLanding(x) skip
#endif
#ifndef alsoHolds
#define alsoHolds(x) true
#endif
#define lands(x) (alsoHolds(x) && ( \
	kind[x] == GRANT && (cur == 0 || (!held(cur) || shows(x)) && !isOwnCopy(x)) || \
	kind[x] == HANDOVER && handsOver(x) || \
	landsInQueue(x) || \
	kind[x] != GRANT && kind[x] != HANDOVER && (held(cur) || landsOnDead(x)) && isGrantOf(x) && (has(names[x], cur) || landsAnyhow(x))))

inline apply(x) {
	if
	:: lands(x) ->
		assert(!(kind[x] == GRANT && cur != 0 && !held(cur) && grant[cur] == x)); /* a grant lands on its own release */
		cur = becomes(x);
		onLanding(x);
		answer(x, APPLIED)
	:: else ->
		answer(x, SHOWS(cur))
	fi
}

/* answer keeps a reply if anybody waits for it. Of two, either may be the one
 * that arrives. */
inline answer(x, r) {
	if
	:: !waits[x]
	:: waits[x] -> reply[x] = r
	:: waits[x] && reply[x] != NONE
	fi
}

/* tidy forgets what nobody asks for any more, so that states do not differ by it. */
#ifndef isAskedFor
#define isAskedFor(x) (copies[x] > 0 || cur == x || waits[x] || usedBy(x, 0) || usedBy(x, 1) || usedBy(x, CLIENTS - 1))
#endif
#define usedBy(x, k) (conf[k] == x || seen[k] == x || has(tried[k], x))
#ifndef isVain
#define isVain(x) false /* its copies make no difference any more */
#endif
#ifndef alsoTidy
#define alsoTidy skip
#endif
#ifndef alsoForget
#define alsoForget(x) skip
#endif
inline tidy() {
	alsoTidy;
	i = 1;
	do
	:: i <= last ->
		if
		:: isVain(i) -> copies[i] = 0
		:: else
		fi;
		if
		:: !isAskedFor(i) -> kind[i] = 0; grant[i] = 0; left[i] = 0; alsoForget(i)
		:: else
		fi;
		if
		:: copies[i] == 0 ->
			names[i] = 0
#ifdef HANDS_OVER
			; ends[i] = 0
#endif
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/* A tick passes for everybody, but on the monotonic clock of one whose machine
 * is suspended. A holder reads another clock, too, which runs on. */
#define AWAKE CLIENTS
#ifndef alsoTick
#define alsoTick(x) skip
#endif
#ifdef WITHOUT_BOTH_CLOCKS
#define stands(x) (asleep == 0 && grant[x] == 1)
#else
#define stands(x) false
#endif
proctype Clock() {
	byte i;
	byte asleep = AWAKE;
	do
	:: atomic {
#ifdef mayTick
		mayTick;
#endif
		if
		:: asleep = AWAKE
#ifdef SUSPENDED
		:: asleep = 0
		:: asleep = 1
#endif
		fi;
		d_step {
			i = 1;
			do
			:: i <= last ->
				left[i] = (left[i] > 0 && !stands(i) -> left[i] - 1 : left[i]);
				alsoTick(i);
				i++
			:: else -> break
			od;
			i = 0;
			do
			:: i < CLIENTS ->
				watch[i] = (watch[i] > 0 && asleep != i -> watch[i] - 1 : watch[i]);
#ifdef WITHOUT_FIRST_SIGHT
				asked[i] = (asked[i] > 0 -> asked[i] - 1 : 0);
#endif
				i++
			:: else -> break
			od;
			asleep = AWAKE;
			tidy()
		}
	}
	od
}

proctype Network() {
	byte i;
	do
	:: atomic {
		if
		:: copies[1] > 0 -> i = 1
#if ATTEMPTS > 1
		:: copies[2] > 0 -> i = 2
#endif
#if ATTEMPTS > 2
		:: copies[3] > 0 -> i = 3
#endif
#if ATTEMPTS > 3
		:: copies[4] > 0 -> i = 4
#endif
#if ATTEMPTS > 4
		:: copies[5] > 0 -> i = 5
#endif
#if ATTEMPTS > 5
		:: copies[6] > 0 -> i = 6
#endif
#if ATTEMPTS > 6
		:: copies[7] > 0 -> i = 7
#endif
#if ATTEMPTS > 7
		:: copies[8] > 0 -> i = 8
#endif
		fi;
		copies[i]--;
		apply(i);
		d_step { tidy() }
	}
	od
}
