/*
 * Commit. A holder sends its writes and the guard of its grant in one transaction, with
 * one idempotency token. It sends the transaction again until it knows the outcome.
 * Meanwhile its grant may end at any moment, and other clients are granted the key. The
 * safety of a commit depends on no clock, so trust may end at any time in this model.
 *
 * Promises: writes are applied only while the grant is current, and only once; a commit
 * that is reported as applied has been applied; a commit that is reported as failed is
 * never applied.
 *
 * The network may lose a request, or deliver it late or twice. DynamoDB rejects requests
 * that were signed more than five minutes ago, and forgets an idempotency token ten
 * minutes after its use. The holder's writes have a condition of their own, which may be
 * true or false at each evaluation. A late copy of the grant may make the same grant
 * again when the key is free, with a new fencing token. The same client may also get
 * another grant of the key.
 *
 * Bounds: 5 requests, of which one arrives twice; 15 minutes. Left out, as
 * docs/internals/protocol.md says: that one copy of a request is rejected and the other
 * copy is applied.
 *
 * Rules. A macro, WITHOUT_ and the name of a rule, compiles the model without the rule:
 *   GUARD: A commit lands only where its guard holds.
 *   GUARD_BY_GRANT: A guard names the grant, and not its owner alone.
 *   GUARD_TOKEN: A guard names the fencing token.
 *   ONE_TOKEN: All requests of a commit carry one idempotency token.
 *   VOID: A token that an unanswered request may use yet is voided before the commit is called failed.
 *   UNANSWERED: A commit with an unanswered request is never called failed because its time is over.
 *   TOKEN_AGE: No request is sent five minutes after the first.
 */
#ifndef MORE
#define MORE 0
#endif
#define REQUESTS (5 + MORE)

/* What a request contains besides the guard, and what an idempotency token was used for. */
#define WRITES 1
#define NOTHING 2

/* Replies. */
#define NONE 0
#define DONE 1
#define GUARD_FAILED 2
#define WRITE_FAILED 3
#define TAKEN 4
#define BUSY 5

/* Stages of a commit. */
#define SENDING 0
#define VOIDING 1
#define REREADING 2

/* Results of a commit. */
#define COMMITTED 1
#define FAILED 2 /* NotHeld, Cancelled, Rejected and GiveUp: the writes were not applied and never will be */
#define DOUBTFUL 3

/* What the record shows: the grant of the commit (STANDS); a release, or a grant of
 * another client (ENDED); the grant of the commit again, made by a late copy, with
 * another token (COPIED); another grant of the same client (AGAIN). Once the record has
 * changed, it never shows STANDS again. */
#define STANDS 0
#define ENDED 1
#define COPIED 2
#define AGAIN 3
byte record = STANDS;

byte landed;      /* how often the writes have been applied */
byte result;
byte minutes;     /* time, in units of five minutes */

#ifdef WITHOUT_ONE_TOKEN
#define slot(x) (x)
#else
#define slot(x) 0
#endif
byte used[REQUESTS + 1]; /* what each idempotency token was used for: WRITES or NOTHING; NONE if it was not used */
byte usedAt[REQUESTS + 1];

byte last;
byte twice = 1;
byte body[REQUESTS + 1];
byte copies[REQUESTS + 1];
byte signed_[REQUESTS + 1];
byte reply;       /* reply to the request for which the committer waits */
byte awaited;

#ifdef WITHOUT_GUARD
#define guarded true
#elif defined(WITHOUT_GUARD_BY_GRANT)
#define guarded (record != ENDED)
#elif defined(WITHOUT_GUARD_TOKEN)
#define guarded (record == STANDS || record == COPIED)
#else
#define guarded (record == STANDS)
#endif

/* answer stores reply r to request x if the committer waits for it. If there are two
 * replies, either may be the one that arrives, except for the case in the bounds. */
inline answer(x, r) {
	if
	:: awaited != x
	:: awaited == x -> reply = r
	:: awaited == x && reply != NONE && r != DONE
	fi
}

inline transact(x) {
	if
	:: used[slot(x)] == body[x] -> answer(x, DONE) /* the same token again: nothing is written */
	:: used[slot(x)] != NONE && used[slot(x)] != body[x] -> answer(x, TAKEN)
	:: used[slot(x)] == NONE ->
		if
		:: !guarded -> answer(x, GUARD_FAILED)
		:: guarded && body[x] == WRITES -> answer(x, WRITE_FAILED) /* the writes' own condition is false */
		:: guarded ->
			used[slot(x)] = body[x];
			usedAt[slot(x)] = minutes;
			if
			:: body[x] == WRITES ->
				landed++;
				assert(record == STANDS);        /* applied only while the grant is current */
				assert(landed == 1);     /* applied only once */
				assert(result != FAILED) /* not applied after the commit was reported as failed */
			:: else
			fi;
			answer(x, DONE)
		:: answer(x, BUSY)
		fi
	fi
}

proctype Network() {
	byte i;
end:	do
	:: atomic {
		if
		:: copies[1] > 0 -> i = 1
		:: copies[2] > 0 -> i = 2
		:: copies[3] > 0 -> i = 3
		:: copies[4] > 0 -> i = 4
		:: copies[5] > 0 -> i = 5
#if REQUESTS > 5
		:: copies[6] > 0 -> i = 6
#endif
#if REQUESTS > 6
		:: copies[7] > 0 -> i = 7
#endif
		fi;
		copies[i]--;
		if
		:: minutes <= signed_[i] + 1 -> transact(i)
		:: else -> copies[i] = 0
		fi;
		if
		:: copies[i] == 0 -> body[i] = 0; signed_[i] = 0
		:: else
		fi;
		i = 0
	}
	od
}

/* forget drops a token ten minutes after its use. */
inline forget(x) {
	if
	:: used[x] != NONE && minutes >= usedAt[x] + 2 -> used[x] = NONE; usedAt[x] = 0
	:: else
	fi
}

proctype World() {
end:	do
	:: record = ENDED
	:: record == ENDED -> record = COPIED
	:: record == ENDED -> record = AGAIN
	:: d_step { minutes < 3 ->
		minutes++;
		forget(0);
#ifdef WITHOUT_ONE_TOKEN
		forget(1); forget(2); forget(3); forget(4); forget(5)
#endif
	}
	od
}

inline finish(how) {
	result = how;
	assert(how != COMMITTED || landed == 1);
	assert(how != FAILED || landed == 0);
	goto over
}

#ifdef WITHOUT_TOKEN_AGE
#define tooOld false
#else
#define tooOld (minutes > 0)
#endif
proctype Committer() {
	byte stage;
	bool unanswered;

	/* The caller's context and the trust in the lock may end before any request. */
send:	atomic {
		if
		:: true ->
#ifdef WITHOUT_UNANSWERED
			finish(FAILED)
#else
			if
			:: unanswered -> finish(DOUBTFUL)
			:: else -> finish(FAILED)
			fi
#endif
		:: !tooOld && last < REQUESTS
		fi;
		last++;
		awaited = last;
		body[last] = (stage == VOIDING -> NOTHING : WRITES);
		signed_[last] = minutes;
		if
		:: copies[last] = 1
		:: twice > 0 -> copies[last] = 2; twice--
		fi
	}
	if
	:: atomic { reply == NONE -> awaited = 0; unanswered = true; goto send }
	:: atomic { reply == BUSY -> reply = NONE; awaited = 0; copies[last] = 0; body[last] = 0; signed_[last] = 0; goto send }
	:: atomic { reply == DONE -> reply = NONE; awaited = 0;
		if
		:: stage == VOIDING -> finish(FAILED)
		:: else -> finish(COMMITTED)
		fi }
	:: atomic { reply == GUARD_FAILED -> reply = NONE; awaited = 0; finish(FAILED) }
	:: atomic { reply == WRITE_FAILED -> reply = NONE; awaited = 0; copies[last] = 0; body[last] = 0; signed_[last] = 0;
		if
#ifdef WITHOUT_VOID
		:: true -> finish(FAILED)
#else
		:: !unanswered -> finish(FAILED)
		:: unanswered -> finish(DOUBTFUL)
		:: unanswered && stage == SENDING -> stage = VOIDING; goto send
#endif
		fi }
	:: atomic { reply == TAKEN -> reply = NONE; awaited = 0;
		if
		:: stage == VOIDING -> stage = REREADING; goto send
		:: true -> /* a request without a reply has used the token */
			assert(unanswered);
			finish(DOUBTFUL)
		fi }
	fi;
over:	skip
}

init {
	atomic { run Network(); run World(); run Committer() }
}
