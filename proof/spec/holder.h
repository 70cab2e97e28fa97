/*
 * A client that holds the key by attempt 1. It renews the grant until its trust ends,
 * it dies, or it releases the key.
 *
 * The condition of each renewal names the last version that is known to have been
 * applied, and every later attempt without a reply. Once its trust in the grant has
 * ended, the client sends no renewal and ignores all replies.
 */
#ifndef mayRenew
#define mayRenew true
#endif
#define versions (only(conf[c]) | tried[c])

/* confirm makes attempt x the one that the client trusts. Earlier attempts no longer matter. */
inline confirm(x) {
	if
	:: believes(c) -> conf[c] = x
#ifdef WITHOUT_FINAL_END
	:: !believes(c) -> begin(x)
#else
	:: !believes(c)
#endif
	fi;
	tried[c] = tried[c] & ~(only(x + 1) - 1);
	shorten(x)
}

/* shorten limits the trust in attempt x to that of later renewals without a reply. A
 * renewal with a shorter lease may be applied at any time after it is sent. */
inline shorten(x) {
#if defined(SHORTER) && !defined(WITHOUT_SHORTER)
	d_step {
		i = x + 1;
		do
		:: i <= last ->
			if
			:: has(tried[c], i) && left[i] < left[x] -> left[x] = left[i]
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0
	}
#else
	skip
#endif
}

proctype Holder(byte c) {
	byte a; /* renewal in flight */
	byte s;
	byte b; /* renewal that is in flight while the client releases the key */
	byte i;
	short n;

hold:	if
	:: atomic { believes(c) && last < ATTEMPTS && mayRenew ->
#ifdef LIVENESS
		renewals--;
#endif
		n = versions;
		send(RENEW, 1, n);
		n = 0;
#ifdef SHORTER
		if
		:: brief[a] = true;
			left[a] = TRUST - 1;
			tried[c] = tried[c] | only(a);
			shorten(conf[c]);
			tried[c] = tried[c] & ~only(a)
		:: skip
		fi
#endif
		}
	:: atomic { !believes(c) -> conf[c] = 0; goto done }
#ifdef HOLDER_RELEASES
	:: believes(c) && last < ATTEMPTS -> goto release
#endif
	:: atomic { tried[c] != 0 -> /* a read */
		s = cur;
		if
		:: has(tried[c], s) ->
#ifdef WITHOUT_OWN_START
			left[s] = TRUST;
#endif
			confirm(s)
		:: !has(tried[c], s)
		fi;
		s = 0;
		goto hold }
	fi;

	if
	:: atomic { reply[a] == APPLIED -> hangup(a);
#ifdef WITHOUT_STAMP
		left[a] = TRUST;
#endif
		confirm(a); a = 0; goto hold }
	:: atomic { reply[a] > APPLIED -> s = SHOWN(reply[a]); hangup(a);
		if
		:: s == a -> confirm(s); a = 0; s = 0; goto hold
		:: s != a ->
			assert(!(held(s) && grant[s] == 1)); /* reported as lost, although the record shows its grant */
			a = 0; s = 0; conf[c] = 0; goto done
		fi }
	:: atomic { tried[c] = tried[c] | only(a); hangup(a); a = 0; goto hold } /* no answer */
#ifdef HOLDER_RELEASES
	:: believes(c) && last < ATTEMPTS -> goto release
#endif
	fi;

#ifdef HOLDER_RELEASES
release: atomic {
		last < ATTEMPTS;
		n = versions;
		if
		:: a != 0 -> n = n | only(a)
		:: else
		fi;
#ifdef WITHOUT_NAMED_ATTEMPTS
		n = only(conf[c]);
#endif
		b = a;
#ifndef WITHOUT_FINAL_END
		if
		:: b != 0 -> hangup(b); b = 0
		:: else
		fi;
#endif
#ifndef WITHOUT_TRUST_ENDS_FIRST
		conf[c] = 0;
#endif
		tried[c] = 0;
		send(RELEASE, 1, n);
		left[a] = 0;
		n = 0
	}
	if
	:: atomic { reply[a] == APPLIED -> hangup(a) }
	:: atomic { reply[a] > APPLIED -> s = SHOWN(reply[a]); hangup(a);
		assert(!(held(s) && grant[s] == 1)); /* reported as lost, although the record shows its grant */
		s = 0 }
	:: atomic { hangup(a) }
	fi;
	atomic { a = 0; conf[c] = 0 }
#ifdef WITHOUT_FINAL_END
	atomic { b != 0 && reply[b] == APPLIED -> begin(b) }
#endif
#endif
done:	skip
}

/* granted makes attempt 1 the holder's grant. A second copy of attempt 1 may still arrive. */
inline granted() {
	last = 1;
	kind[1] = GRANT;
	grant[1] = 1;
	left[1] = TRUST;
	conf[0] = 1;
	cur = 1;
	if
	:: copies[1] = 0
	:: twice > 0 -> copies[1] = 1; twice--
	fi
}
