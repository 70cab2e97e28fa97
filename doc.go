// Package leasehold is a distributed lock on Amazon DynamoDB.
//
// A lock is a lease that its holder keeps renewing. When the holder dies the lease
// runs out and another client takes over. DynamoDB is the only server.
//
//	locks, err := leasehold.New(dynamodb.NewFromConfig(cfg), leasehold.Config{Table: "locks"})
//	...
//	err = locks.Do(ctx, "customer/42", func(ctx context.Context, lock *leasehold.Lock) error {
//		return lock.Commit(ctx, writes) // lands only while the lock is ours
//	})
//
// # Which context ends when
//
//	passed to Acquire   bounds the wait; ending it later does nothing to the lock
//	lock.Context()      ends with the lock; has the values of Acquire's context, not its end
//	lock.Bind(ctx)      ends with the lock or with ctx, whichever is first
//	inside Do           Bind(ctx)
//	passed to Release   bounds the wait for the reply, never below Config.ReleaseGrace
//
// # The promises
//
// Fenced work is safe, always: a write made through Lock.Commit, or guarded by
// Lock.Guard, never lands after its grant ended, whatever pauses, delays,
// repeated requests, lost replies and jumping clocks. It rests on DynamoDB's
// conditional writes alone, not on time.
//
// Belief is conservative: Lock.Err and Lock.Context end before any other client
// can be granted the lock, if clock rates differ by less than the margin. After
// a pause the first look is told the truth.
//
// A dead holder blocks nobody for long: a waiter takes over one lease after the
// first reply that showed it the last renewal, plus one round trip.
//
// One lost reply loses nothing: a write that succeeded but whose answer never
// came is recognised as our own.
//
// Not promised: a lock without fencing cannot guarantee exclusion in an
// asynchronous network. A target that compares tokens (Lock.Token) is safe
// while the lock's record is kept. Two regions of an eventually consistent
// global table can both grant. Machines whose clocks all stop, as a suspended
// guest's may, learn late. Break gives up by request that belief ends in time;
// fenced work stays safe.
//
// # States of a record
//
//	            grant                      release, break
//	absent ────────────────► held ──────────────────────► released
//	   ▲                     │  ▲                            │ │
//	   │                     │  └────────────────────────────┘ │
//	   │         delete      │            grant                │
//	   └─────────────────────┴─────────────────────────────────┘ TTL
//
// A held record goes over to another holder without being released in two
// ways: taken over, when its version has stood still for its own lease under
// the eyes of the one who takes it; and handed over, when the holder passes
// the key to the next goroutine of its own client. Every write is conditional
// and carries a new version, a random one; a version never comes back, so a
// late duplicate of any request meets a condition that is false for ever.
//
// # States of a holding
//
//	trusted ──► lost      trust ran out, or the record was seen without the grant
//	        ──► released  Release, Close, or the end of Do: before its request is sent
//	        ──► detached  Detach
//
// Trust lasts until the instant before the last confirmed attempt was sent,
// plus the lease, less the margin, by the monotonic clock and by the clock
// that runs on in suspend, whichever is first. It never revives.
//
// # What each request may come to
//
// Every answer is one of three: applied; not applied (a failed condition that
// shows no version of ours, a refusal, throttling); or unknown (no reply, a
// server error, a reply that cannot be read). The SDK's own retries are off,
// because a repeated write must be a new attempt whose condition knows those
// before it.
//
// A request for which there were no credentials, or that could not be signed,
// was not sent: not applied. A client that has had an answer before repeats it
// within the bounds of its call; one that never had returns the error at once.
//
//	grant      applied: held. A condition that failed shows the holder, who is
//	           observed; or a version of this very call, which is our own success.
//	           Unknown: the next attempt's condition also takes what the lost one
//	           may have written. Given up: remembered for 15 minutes, taken over
//	           at once when seen as the holder; others wait one lease at most.
//	look       a consistent read. What it shows is observed; that it shows nothing
//	           of ours proves nothing.
//	renew      applied: trusted anew from that attempt's sending. A condition that
//	           failed shows an unanswered attempt of ours, which has landed; or the
//	           lock is lost. Everything else is repeated until trust ends. Of the
//	           locks that are due the one with the least trust left goes first; a
//	           table that throttles decides how many are renewed a second.
//	hand over  applied: the next goroutine holds. Unknown: repeated, naming all
//	           that was tried; given up, the next one seeks the key itself and may
//	           take over whatever of it landed.
//	release    applied: free. Unknown: repeated within the bounds of its context;
//	           then ErrUnknownOutcome, and the lease frees the key. That another
//	           holds the key after an unanswered release sent in time means that
//	           the release landed. Neither that nor a refusal is final: whatever
//	           has not shown the grant gone can be released again, and this client
//	           may take it over at once. Under a session, whose renewals would keep
//	           the key, the client repeats it by itself.
//	break      applied: free. It names the version that was looked at, so that
//	           what it frees is what it knows: data keeps a record from TTL. A
//	           condition that failed shows our own break; or the same grant,
//	           renewed since, and the break is repeated on what it shows; or that
//	           the grant has changed, which is left alone.
//
// # Fenced work
//
// A commit is one transaction: the caller's writes, and last the guard, which
// checks that the record shows this grant, owner and token, and is not
// released. It does not name the version, so renewals do not disturb it. All
// requests of one call carry one idempotency token and the same bytes. Three
// facts settle what became of it: a request under the token of one that landed
// succeeds and writes nothing, whatever has happened to the lock since; a token
// that one transaction has used refuses a different one; and a guard that
// failed fails for ever, because no grant comes back while records are kept.
//
//	answer to a request          all earlier ones answered   one without an answer
//	success                      landed                      landed, once
//	guard failed                 ErrLost                     ErrLost: no earlier one has landed,
//	                                                         and none ever will
//	a write failed               *CommitError, lock held     an earlier one may land yet, when the
//	                                                         condition holds: the token is voided
//	conflict, throttled          again while trusted         again
//	in progress, 5xx, silence    again (and now one is without an answer)
//	refused                      that error                  ErrUnknownOutcome
//	ctx over, five minutes over  nothing written             ErrUnknownOutcome
//	trust over                   ErrLost                     again: the answer still tells
//
// To void a token the guard alone is sent under it. Success: the token is used,
// the writes can never land, *CommitError. The guard failed: ErrLost. The token
// is refused: the writes seem to have landed, and are sent once more to see;
// whatever is not success then is ErrUnknownOutcome.
//
// Five minutes after the first request, by the clock that says more, no other is
// sent: DynamoDB keeps a token for ten, and takes no request signed five minutes
// ago. The last look is behind the signing, whose time DynamoDB goes by: a
// process that stood still before it sends nothing under an old token. A network
// that repeats a request after its refusal was delivered can land it yet, while
// the grant stands and if its own conditions have come true: conditions on values
// that never come back are proof against that too.
//
// CommitAndRelease has the conditional release in the guard's place. Trust ends
// before it is sent. Where the writes have not landed a plain release follows;
// where that is unknown as well, and a record released by this very attempt is
// recognised. The commits of a lock take turns with each other and with its
// release or hand-over, which wait for them within their own bounds. A renewal
// waits for a commit a quarter of the trust left at most: should they conflict,
// the renewal is repeated.
//
// A transaction of the caller's own is as safe with Lock.Guards in it, and
// Lock.GuardError tells the lock how it ended. Lock.Read reads the record in the
// same transaction as the caller's items: a plain read may show what was before
// a commit that an earlier holder's request is still carrying out.
//
// # Shared leases
//
// With Config.SharedLease a client renews one row, its session's, in the place
// of all its locks' records. A lock under a session is trusted exactly while the
// session is. Its own record is renewed rarely, and says an hour, for readers
// that know nothing of sessions: that it was, or could not be, changes no trust;
// that it shows another grant, or a release, ends the lock.
//
//	create session   put if absent, under an id that was never used. Unknown: it
//	                 is deleted, and the next attempt has another id.
//	renew session    as renew; it can never create the row anew. Refused: the
//	                 session was marked dead or deleted, and every lock is lost.
//	mark dead        by whoever waits for one of its locks and has watched the
//	                 session's version stand still for its lease; by its own client
//	                 when it closes, or begins another after its trust has ended.
//	                 Final. From then on each of its locks may be taken over at the
//	                 version it shows.
//
// What frees a lock is then its session's row as well as its own record. Every
// commit and read checks both, a commit of several locks each session once; to
// void a token both guards are sent. A session that was marked dead stays so:
// that guard fails for ever too, and with it every lock of the session is lost.
// One item is in one transaction at a time, so requests of one client that name
// the row take turns, each for half a second at most; a renewal of the row has
// no more than two before it, and is repeated at once should they conflict.
//
// A row that was deleted by hand fails the guard, but not for ever: a repetition
// of the request that created it, minutes later at most, creates it again. Until
// another has been granted the lock, a request sent before the deletion can land
// then. Marking a session dead leaves no such hole.
//
// Nobody takes a lock over because its own record stood still. What an attempt
// that was given up holds is therefore not freed by time while its session
// lives: its client looks after the key until no request can be late any more,
// as it repeats a release that failed.
//
// A record's session counts only if the owner's name ends in its id: a peer may
// carry the attribute into its own grant. A session's row that is not there,
// collected long after its death or deleted by hand, is watched for one lease.
//
// # Waiting
//
// A waiter looks by consistent reads, never by writes: a rejected write costs a
// write unit and can abort a transaction of the holder. Its pauses grow with
// the age of the grant it watches. When the version has stood still for the
// record's lease by the waiter's monotonic clock, the look is the conditional
// takeover itself. No wall clocks are compared. The goroutines of one client
// wait in a line of their own, of which only the first looks.
//
// # Several keys
//
// AcquireAll sorts its keys and is in one of three states, and holds something
// only in the last two. To ask it takes its turn in the local lines of all keys
// at once, and while it waits it has that of the key for which it waits: the
// others are free for the other goroutines of its client. That one of them has
// a key by then counts as a refusal.
//
//	       ┌──────── a key is held ────────┐
//	       ▼                               │
//	    waiting ── none is known held ──► asking ── granted ──► held
//	                                       │                     ▲
//	                          five refusals, over 100 keys,      │
//	                          or no transactions                 │
//	                                       ▼                     │
//	                                  in order ── the last ──────┘
//
//	asking     one transaction of grants, applied as a whole or not at all. Applied:
//	           it returns no records, so a batch of consistent reads tells tokens
//	           and data; trust counts from before the transaction was sent, and one
//	           that cannot be read back while half of that is left is replaced by
//	           another. Cancelled: every key that was held shows its record, which
//	           is observed; one that shows this very attempt says that all of it
//	           has landed. In conflict or throttled: repeated. Unknown: repeated as
//	           a new attempt with new versions, whose conditions also take the
//	           versions without an answer, and with an idempotency token of its
//	           own: it grants or replaces, and a late copy of the first meets
//	           versions that are gone.
//	waiting    watches the first key that is held, or waits in its line, as a
//	           waiter for one key does, then the next, and holds nothing meanwhile.
//	in order   takes key after key like Acquire and renews what it has. Everybody
//	           goes by one order, so that nobody who holds a key waits for one who
//	           waits for it. If a key is lost on the way, all are given back and
//	           the order begins anew.
//	held       a Group. Its release is one transaction; whatever that comes to short
//	           of being applied, the keys are released one by one, each expecting
//	           the attempt that had no answer.
//
// Attempts that are given up are remembered and released key by key, as those
// of Acquire are. AcquireAny is a waiter for many keys: it takes the first that
// is free or whose holder is dead, and watches all by one read. After a grant
// of unknown effect it stays with that key until it is answered, so that it
// never ends up with two.
package leasehold
