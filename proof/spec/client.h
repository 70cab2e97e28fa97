/*
 * A client that tries to acquire the key, holds it, and releases it or lets its lease
 * expire.
 *
 * It first sends a grant without reading the record. If the grant is rejected, the
 * client watches the holder. It takes over from a holder whose version has not changed
 * for the length of the holder's lease. If an attempt gets no reply, the condition of the
 * next attempt names it. So the next attempt replaces the earlier attempt if the earlier
 * attempt was applied.
 */
#ifndef givesUp
#define givesUp skip /* a client may stop waiting for any reply */
#endif
proctype Client(byte c) {
	byte a; /* attempt in flight */
	byte s; /* version that the record shows */

seek:	atomic {
		last < ATTEMPTS;
#ifdef WITHOUT_FIRST_SIGHT
		asked[c] = LEASE;
#endif
		send(GRANT, last, tried[c] | when(watch[c] == 0, deadVersions(c)))
	}
wait:	if
	:: atomic { reply[a] == APPLIED ->
		s = a;
		hangup(a);
#ifdef WITHOUT_STAMP
		left[a] = TRUST;
#endif
		goto hold }
	:: atomic { reply[a] > APPLIED ->
		s = SHOWN(reply[a]);
		hangup(a);
		if
		:: held(s) && has(tried[c] | only(a), s) -> /* its own attempt, which was applied without a reply */
			a = 0;
			if
			:: left[s] > 0 -> goto hold
			:: else -> tried[c] = tried[c] | only(s); s = 0; goto seek
			fi
		:: held(s) && !has(tried[c] | only(a), s) -> notice(s); a = 0; s = 0
		:: !held(s) -> a = 0; s = 0; goto seek
		fi }
#ifdef WITHOUT_NEW_VERSION
	:: atomic { last < ATTEMPTS -> last++; left[a] = TRUST; copies[a]++; reply[a] = NONE; goto wait }
#else
	:: atomic { givesUp; tried[c] = tried[c] | only(a); hangup(a); a = 0; goto seek } /* no answer */
#endif
	fi;

look:	if
	:: atomic { watch[c] == 0 -> goto seek }
#ifdef BOUNDED_CLOCK
	:: atomic { watch[c] != 0 && cur == seen[c] && looks > 0 -> /* reads the same version again, after its clock was set */
		looks--;
		beforeSight;
		watch[c] = (sight(cur) < watch[c] -> sight(cur) : watch[c]) }
		goto look
#endif
	:: atomic { watch[c] != 0 && cur != seen[c] ->
		if
		:: held(cur) -> notice(cur); goto look
		:: else -> seen[c] = 0; watch[c] = 0; goto seek
		fi }
	fi;

hold:	atomic { seen[c] = 0; watch[c] = 0; a = 0; begin(s); tried[c] = only(s); s = 0 }
	if
#ifdef RELEASES
	:: atomic { last < ATTEMPTS && conf[c] != 0 ->
		s = conf[c];
#ifndef WITHOUT_TRUST_ENDS_FIRST
		conf[c] = 0;
#endif
		send(RELEASE, grant[s], tried[c]);
		left[a] = 0;
		s = 0 }
		if
		:: atomic { reply[a] != NONE -> hangup(a); a = 0; tried[c] = 0; conf[c] = 0 }
		:: atomic { hangup(a); a = 0; conf[c] = 0 }
		fi
#endif
	:: atomic { left[conf[c]] == 0 -> conf[c] = 0; tried[c] = 0 }
	fi;
	goto seek
}
