/*
 * One record of the lock table, the network in front of it, and time.
 *
 * An attempt is a write that is sent once. Its number is also the version that it
 * writes. So the number of the attempt that was applied last describes the record:
 * which grant the record shows, and whether that grant is released. The number 0
 * means that there is no record.
 *
 * The network may lose a request before it is applied. It may also deliver the request
 * immediately, or long after its sender has stopped waiting. In one run, at most
 * TWICE requests arrive a second time. The reply to any copy may arrive, late or
 * never. A client may stop waiting for a reply at any moment.
 *
 * Time passes in ticks, between any two steps. The model stores no points in time:
 * each attempt counts down how long its client may still trust it, and each observer
 * counts down the rest of the lease of the version that it watches. A suspended
 * process takes no step while time passes. A crashed process never takes a step
 * again. During a lease, two clocks differ by at most DRIFT ticks, and an observer's
 * clock may be the fast one.
 *
 * A client believes that it holds the key while it trusts an attempt that granted or
 * renewed the key.
 */
#ifndef MORE
#define MORE 0 /* number of additional attempts, for a longer search (LEASEHOLD_BOUNDS) */
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
#define SET short /* type of a set of attempts, with one bit for each attempt */
#endif
#define only(v) (1 << (v))
#define when(test, set) ((test) * (set))
#define has(set, v) (((set) >> (v)) & 1)

byte cur;             /* attempt that was applied last; 0 if there is no record */
byte last;            /* attempt that was sent last */
byte twice = TWICE;   /* number of requests that may still arrive a second time */
byte conf[CLIENTS];   /* attempt because of which the client believes that it holds the key; 0 for none */
byte seen[CLIENTS];   /* version, written by another client, that the client watches; 0 for none */
byte watch[CLIENTS];  /* rest of the lease of that version, in ticks */
SET tried[CLIENTS]; /* the client's own attempts without a reply */

byte kind[ATTEMPTS + 1];
byte grant[ATTEMPTS + 1];  /* grant that the record shows once the attempt is applied */
SET names[ATTEMPTS + 1]; /* versions of the record that the attempt's condition accepts ("names") */
byte copies[ATTEMPTS + 1]; /* number of copies that may still arrive */
byte left[ATTEMPTS + 1];   /* how long the client may still trust the attempt, in ticks */
byte reply[ATTEMPTS + 1];
bool waits[ATTEMPTS + 1];  /* whether the client still waits for the reply */

#ifdef HANDS_OVER
SET ends[ATTEMPTS + 1]; /* grants that the attempt, a hand-over or a release, may end */
#endif
#ifdef SHORTER
bool brief[ATTEMPTS + 1]; /* whether the attempt writes a lease that is one tick shorter */
#define leaseOf(v) (LEASE - brief[v])
#elif !defined(leaseOf)
#define leaseOf(v) LEASE
#endif

#define held(v) ((v) != 0 && kind[v] != RELEASE)

/* A holder that is asked whether it holds the key reads its clocks first. */
#ifdef WITHOUT_LOOK
#define believes(k) (conf[k] != 0)
#else
#define believes(k) (conf[k] != 0 && left[conf[k]] > 0)
#endif

#ifndef onSend
#define onSend(x) skip
#endif
/* send sends a write of kind k once, as attempt a. Its condition accepts the versions
 * in n. The condition of a holder's write also requires that the record shows grant g. */
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

/* hangup makes the client stop waiting for the reply to attempt x. */
inline hangup(x) {
	waits[x] = false;
	reply[x] = NONE
}

/* begin makes client c believe that it holds the key, because of attempt x. */
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

/* sight is the rest of the lease of version v when a client first sees the version. */
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

/* notice records that a reply has shown version v of another client. The age of a
 * version begins when the client first sees it, and begins again at each change. */
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

/* The condition of a takeover names the version that has not changed for a lease. So
 * the takeover is rejected if a renewal is applied before it. */
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

/* lands is true if the condition of attempt x holds. isOwnCopy is true if x is a
 * second copy of a grant: the record shows the same grant id, held or released. */
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
		assert(!(kind[x] == GRANT && cur != 0 && !held(cur) && grant[cur] == x)); /* a grant is applied to its own release */
		cur = becomes(x);
		onLanding(x);
		answer(x, APPLIED)
	:: else ->
		answer(x, SHOWS(cur))
	fi
}

/* answer stores reply r to attempt x if the client waits for it. If there are two
 * replies, either may be the one that arrives. */
inline answer(x, r) {
	if
	:: !waits[x]
	:: waits[x] -> reply[x] = r
	:: waits[x] && reply[x] != NONE
	fi
}

/* tidy resets the data of attempts that no process uses any more. Otherwise states
 * would differ in data without any effect. */
#ifndef isAskedFor
#define isAskedFor(x) (copies[x] > 0 || cur == x || waits[x] || usedBy(x, 0) || usedBy(x, 1) || usedBy(x, CLIENTS - 1))
#endif
#define usedBy(x, k) (conf[k] == x || seen[k] == x || has(tried[k], x))
#ifndef isVain
#define isVain(x) false /* true if the remaining copies of x can have no effect */
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

/* A tick passes on all clocks except the monotonic clock of a suspended machine. A
 * holder also reads a second clock, which runs while its machine is suspended. */
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
