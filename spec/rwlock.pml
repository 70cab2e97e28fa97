/*
 * Read/write lock. Two readers and a writer share one row. A reader enters,
 * renews its entry once, and leaves, dies or is suspended; the writer watches
 * the entries, and takes over from those that stood still.
 *
 * Promises: nobody believes beside a writer that believes.
 *
 * Bounds: a reader asks for the key twice, the other and the writer once, and a
 * reader renews once each time; each of their requests lands at once or late, and
 * its reply may be lost; a lease of 3 ticks, of which one is the margin.
 * Abstracted: attempts that are repeated are those of grant.pml and renewal.pml;
 * intents and the turns of readers, on which exclusion does not rest.
 *
 * Rules, each with the variant that goes without it:
 *   READERS_COUNTED: A writer's grant names the number of readers.
 *   READERS_VERSIONS: A writer's grant names the version of each reader that it takes over.
 *   NO_WRITER: A reader's grant lands only where there is no writer.
 */
#ifndef MORE
#define MORE 0
#endif
#define LEASE 3
#define TRUST (LEASE - 1)
#define WRITER 2

byte entry[3];   /* the version of each one's entry; 0: there is none */
byte next = 1;   /* version */
byte left[3];    /* of the trust that each believes in */
byte hope[3];    /* of the trust that the request under way is good for */
byte seen[2];    /* the version of each reader that the writer watches */
byte watch[2];

#define believes(p) (left[p] > 0)

inline trust(p) {
	left[p] = hope[p];
	hope[p] = 0;
	assert(left[WRITER] == 0 || left[0] == 0 && left[1] == 0)
}

#ifdef WITHOUT_NO_WRITER
#define mayRead true
#else
#define mayRead (entry[WRITER] == 0)
#endif

proctype Reader(byte p) {
	byte old;
	byte turns = (p == 0 -> 2 : 1) + MORE;
	do
	:: turns > 0 && entry[p] == 0 ->
		turns--;
		hope[p] = TRUST;
		if
		:: atomic { mayRead -> entry[p] = next; next++ }
			if
			:: atomic { trust(p) }
			:: hope[p] = 0 /* the reply is lost */
			fi
		:: hope[p] = 0
		fi;
		if
		:: atomic { believes(p) -> hope[p] = TRUST; old = entry[p] } /* a renewal is sent */
			if
			:: atomic { entry[p] == old && old != 0 -> entry[p] = next; next++; old = 0 }
				if
				:: atomic { believes(p) -> trust(p) }
				:: hope[p] = 0
				fi
			:: atomic { hope[p] = 0; old = 0 }
			fi
		:: skip
		fi;
		if
		:: atomic { left[p] = 0; old = entry[p] } /* it leaves */
			atomic { entry[p] = (entry[p] == old -> 0 : entry[p]); old = 0 }
		:: left[p] == 0 /* or its lease runs out */
		fi
	:: turns == 0 || entry[p] != 0 -> break
	od
}

inline look(p) {
	if
	:: entry[p] == seen[p]
	:: entry[p] != seen[p] ->
		seen[p] = entry[p];
		if
		:: seen[p] == 0 -> watch[p] = 0
		:: seen[p] != 0 -> watch[p] = LEASE
		:: seen[p] != 0 -> watch[p] = LEASE - 1
		fi
	fi
}

#define there(p) (entry[p] != 0)
#ifdef WITHOUT_READERS_VERSIONS
#define stoodStill(p) (seen[p] == 0 || there(p))
#else
#define stoodStill(p) (seen[p] == 0 || entry[p] == seen[p])
#endif
#ifdef WITHOUT_READERS_COUNTED
#define counted true
#else
#define counted (there(0) + there(1) == (seen[0] != 0) + (seen[1] != 0))
#endif

proctype Writer() {
	byte turns = 1 + MORE;
	do
	:: turns > 0 && (entry[0] != seen[0] || entry[1] != seen[1]) -> atomic { look(0); look(1) }
	:: atomic { turns > 0 && watch[0] == 0 && watch[1] == 0 -> turns--; hope[WRITER] = TRUST }
		if
		:: atomic { counted && stoodStill(0) && stoodStill(1) ->
			entry[WRITER] = next; next++; entry[0] = 0; entry[1] = 0; seen[0] = 0; seen[1] = 0 }
			if
			:: atomic { trust(WRITER) }
			:: hope[WRITER] = 0
			fi;
			left[WRITER] = 0;
			entry[WRITER] = 0
		:: hope[WRITER] = 0
		fi
	:: turns == 0 -> break
	od
}

#define tick(x) x = (x > 0 -> x - 1 : 0)
proctype Clock() {
	do
	:: d_step {
		tick(left[0]); tick(left[1]); tick(left[2]);
		tick(hope[0]); tick(hope[1]); tick(hope[2]);
		tick(watch[0]); tick(watch[1])
	}
	od
}

init {
	atomic { run Reader(0); run Reader(1); run Writer(); run Clock() }
}
