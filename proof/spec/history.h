/*
 * History. This model executes a history: the events of one key in a run of the
 * simulation, as internal/simulation/writes_test.go has recorded them. The network and
 * the clients take exactly the steps in the history, in its order. Only time is free:
 * any number of ticks may pass between two events. The model accepts a history if there
 * is an execution with all its events.
 *
 * The record, the conditions of writes, the trust in an attempt and the watch of a
 * version are those of record.h, as in the other models. So is the rule that a client
 * must not begin to believe while another client does. The rest is here, because a
 * process of the simulation does more than a client of those models: it acquires, holds,
 * hands over and releases a key for several goroutines, in any order.
 *
 * The model takes the following from the history, without checking it: the purpose of a
 * request, the grants that it concerns, that it is sent, and what a reply shows.
 */
#define CLIENTS 4
#define ATTEMPTS 30 /* attempts in use at the same time; the number of an attempt is used again later */
#define LEASE 3
#define TWICE 0
#define SET int
#define HANDS_OVER
#define SHORTER
#define PLACES 8

/* In this model, a failed assertion is not an error. It only makes the step impossible. */
#define assert(holds) (holds)

/* Kinds of attempts besides those in record.h. */
#define JOIN 5
#define LEAVE 6
#define GUARD 7
#define READ 8

/* A value of place besides the positions in the queue. */
#define EVERY 100 /* the write removes the whole queue */

#define isAskedFor(x) true
#define keeps(x) (kind[x] == JOIN || kind[x] == LEAVE || kind[x] == GUARD)
#define becomes(x) (keeps(x) -> cur : x)
#define isInQueue(x) ( \
	queue[0] == x || queue[1] == x || queue[2] == x || queue[3] == x || \
	queue[4] == x || queue[5] == x || queue[6] == x || queue[7] == x)
#define isThere(x) (entry[x] == 0 || queue[(kind[x] == HANDOVER -> 0 : place[x])] == entry[x])
#define isToken(x) (token[x] == 0 || token[x] == turns[grant[cur]])
#define mayLand(x) (lands(x) && isThere(x) && isToken(x))
#define landsInQueue(x) (kind[x] == JOIN && held(cur) && !isInQueue(x) || kind[x] == LEAVE || kind[x] == GUARD && held(cur) && isGrantOf(x))
#define mayTick (event == 0 && c_expr { !accepted[now.history] })

byte entry[ATTEMPTS + 1]; /* entry that the write removes from the queue */
byte place[ATTEMPTS + 1]; /* position of that entry in the queue */
byte by[ATTEMPTS + 1];    /* client that may name the version: it sent the attempt, or was handed the key by it */
byte turns[ATTEMPTS + 1]; /* token: how often the grant was made; a late copy makes it again, with a higher token */
byte turn[ATTEMPTS + 1];  /* token that the grant's client was shown */
byte token[ATTEMPTS + 1]; /* token that the write's condition names; 0 for none */
byte queue[PLACES];
byte queued;
byte known[CLIENTS];      /* the client's own attempt that a reply has last shown as applied */

/* The next event of the history. */
#define SENDS 1
#define MEETS 2
#define HEARS 3
#define BELIEVES 4
#define DOUBTS 5
int history;
int at;
byte event;
byte x;       /* attempt of the event; grant if the event is BELIEVES or DOUBTS */
byte c;       /* client of the event */
byte version; /* version that the record shows */
bool applied;

#include "record.h"

c_decl {
	\#include "events.h"
}

/* forget removes all traces of attempt v, because its number now belongs to another
 * attempt. The record no longer shows the earlier attempt. */
inline forget(v) {
	i = 1;
	do
	:: i <= ATTEMPTS -> names[i] = names[i] & ~only(v); ends[i] = ends[i] & ~only(v); i++
	:: else -> break
	od;
	i = 0;
	do
	:: i < CLIENTS ->
		tried[i] = tried[i] & ~only(v);
		known[i] = (known[i] == v -> 0 : known[i]);
		watch[i] = (seen[i] == v -> 0 : watch[i]);
		seen[i] = (seen[i] == v -> 0 : seen[i]);
		i++
	:: else -> break
	od;
	i = 0
}

inline clear() {
	do
	:: queued > 0 -> queued--; queue[queued] = 0
	:: else -> break
	od
}

inline remove(n) {
	i = n;
	do
	:: i + 1 < PLACES -> queue[i] = queue[i + 1]; i++
	:: else -> break
	od;
	queue[PLACES - 1] = 0;
	queued--;
	i = 0
}

/* follow applies the effects of attempt x on the queue and on the tokens. */
inline follow() {
	if
	:: kind[x] == JOIN -> queue[queued] = x; queued++
	:: kind[x] == GUARD -> ends[x] = 0 /* so that it cannot be applied again */
	:: place[x] == EVERY -> clear()
	:: entry[x] != 0 -> remove(place[x])
	:: else
	fi;
	if
	:: kind[x] == GRANT || kind[x] == HANDOVER -> turns[grant[x]]++
	:: else
	fi
}

/* told is a field of the current event. */
#define told(what) c_expr { events[now.at].what }
#define sameLine ( \
	queue[0] == told(queue[0]) && queue[1] == told(queue[1]) && queue[2] == told(queue[2]) && queue[3] == told(queue[3]) && \
	queue[4] == told(queue[4]) && queue[5] == told(queue[5]) && queue[6] == told(queue[6]) && queue[7] == told(queue[7]))

/* own finds the versions of the grants in g that client c may name, and adds them to its argument set. */
inline own(g, set) {
	i = 1;
	do
	:: i <= ATTEMPTS -> set = set | when(by[i] == c && has(g, grant[i]) && !keeps(i) && kind[i] != READ, only(i)); i++
	:: else -> break
	od;
	i = 0
}

/* endedBy makes the condition of write v name the token of the grant that v may end. If v may
 * end several grants, endedBy changes nothing. */
inline endedBy(v) {
	i = 1;
	do
	:: i <= ATTEMPTS -> token[v] = (ends[v] == only(i) -> turn[i] : token[v]); i++
	:: else -> break
	od;
	i = 0
}

#define ofGrants(set, v) has(set, grant[v])
#define gives (kind[x] == RELEASE || kind[x] == HANDOVER)

proctype History() {
	byte i;
	SET n;
	do
	:: atomic {
		c_expr { !accepted[now.history] };
		d_step {
			event = told(event);
			x = told(attempt);
			c = told(client);
			version = told(version);
			applied = told(applied)
		};
		if
		:: event == SENDS ->
			d_step {
				forget(x);
				kind[x] = told(kind);
				grant[x] = told(grant);
				ends[x] = told(ends);
				brief[x] = told(brief);
				entry[x] = told(entry);
				place[x] = told(place);
				by[x] = c;
				turns[x] = 0;
				turn[x] = 0;
				token[x] = 0;
				copies[x] = 1; /* the request may arrive at any time, and more than once */
				left[x] = TRUST - brief[x]
			};
			/* Trust in a grant must end before its release or hand-over is sent. */
			!gives || conf[c] == 0 || !ofGrants(ends[x], conf[c]);
			d_step {
				if
				:: kind[x] == GRANT -> n = when(conf[c] == 0, tried[c]) | when(watch[c] == 0, deadVersions(c))
				:: kind[x] == RENEW || gives -> own(ends[x], n)
				:: else
				fi;
				if
				:: kind[x] == GUARD || kind[x] == RENEW -> token[x] = turn[grant[x]]
				:: gives -> endedBy(x)
				:: else
				fi;
				names[x] = n & ~only(x);
				n = 0;
				if
				:: !keeps(x) && kind[x] != READ -> tried[c] = tried[c] | only(x)
				:: else
				fi;
				if
				:: kind[x] == RENEW && conf[c] != 0 && grant[conf[c]] == grant[x] && left[x] < left[conf[c]] -> left[conf[c]] = left[x]
				:: else
				fi
			}
		:: event == MEETS && applied ->
			mayLand(x);
			d_step {
				/* A release may be able to end several grants. The record still shows the one that it ended. */
				grant[x] = (kind[x] == RELEASE -> grant[cur] : grant[x]);
				cur = becomes(x);
				follow()
			};
			cur == version && sameLine
		/* A condition need not name every version that it is allowed to name. So a grant may be rejected whenever the key is held. */
		:: event == MEETS && !applied ->
			!mayLand(x) || kind[x] == GRANT && held(cur);
			cur == version && sameLine
		:: event == HEARS ->
			d_step {
				/* A hand-over may turn a queue entry into a grant after any read that does not show it. So
				 * trust in the entry counts from when the last such read was sent. */
				i = 1;
				do
				:: i <= ATTEMPTS ->
					if
					:: kind[i] == JOIN && by[i] == c && (version == 0 || grant[version] != i) -> left[i] = (left[x] < TRUST - 1 -> left[x] : TRUST - 1)
					:: else
					fi;
					i++
				:: else -> break
				od;
				i = 0;
				if
				:: version != x && kind[x] != READ && !keeps(x) -> tried[c] = tried[c] & ~only(x)
				:: else
				fi;
				if
				:: held(version) && kind[version] == HANDOVER && kind[grant[version]] == JOIN && by[grant[version]] == c ->
					by[version] = c;
					tried[c] = tried[c] | only(version)
				:: else
				fi;
				if
				:: version != 0 && by[grant[version]] == c && turn[grant[version]] == 0 -> turn[grant[version]] = turns[grant[version]]
				:: else
				fi;
				if
				:: held(version) && has(tried[c], version) ->
					known[c] = version;
					seen[c] = 0;
					watch[c] = 0;
					if
					:: conf[c] != 0 && grant[conf[c]] == grant[version] && believes(c) && kind[version] == RENEW -> conf[c] = version
					:: else
					fi
				:: held(version) && !has(tried[c], version) && seen[c] != version ->
					seen[c] = version;
					watch[c] = leaseOf(version) - DRIFT
				:: held(version) && !has(tried[c], version) && seen[c] == version
				:: !held(version) -> seen[c] = 0; watch[c] = 0
				fi
			}
		:: event == BELIEVES ->
			i = known[c];
			i != 0 && grant[i] == x;
			i = (kind[i] == HANDOVER && kind[x] == JOIN -> x : i);
			left[i] > 0;
			begin(i);
			i = 0
		:: event == DOUBTS ->
			conf[c] != 0 && grant[conf[c]] == x && believes(c);
			conf[c] = 0
		fi;
		d_step {
			at++;
			event = 0;
			x = 0;
			c = 0;
			version = 0;
			applied = false
		};
		c_code { reaches(now.history, now.at); } }
	od
}

init {
	do
	:: history + 1 < c_expr { histories } -> history++
	:: break
	od;
	atomic {
		at = c_expr { begins_at[now.history] };
		last = ATTEMPTS;
		run Clock();
		run History()
	}
}
