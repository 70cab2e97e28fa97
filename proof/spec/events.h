/* This code reads the histories that history.h checks, and prints the results. The file
 * "events" contains the number of histories, the number of events of each history, and then
 * all events, each as a list of numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct event {
	unsigned char event, client, attempt, kind, grant, brief, entry, place, version, applied, queue[8];
	int ends;
} *events;
static int histories, *begins_at, *ends_at, *furthest;
static unsigned char *accepted;

static void reaches(int history, int at)
{
	if (at > furthest[history])
		furthest[history] = at;
	if (at == ends_at[history])
		accepted[history] = 1;
}

static void tell(void)
{
	for (int i = 0; i < histories; i++)
		printf("history %d %s %d\n", i, accepted[i] ? "accepted" : "refused", furthest[i] - begins_at[i]);
}

static int number(FILE *from)
{
	int n;
	if (fscanf(from, "%d", &n) != 1) {
		fprintf(stderr, "no number in events\n");
		exit(1);
	}
	return n;
}

__attribute__((constructor)) static void load(void)
{
	FILE *from = fopen("events", "r");
	if (from == NULL) {
		perror("events");
		exit(1);
	}
	histories = number(from);
	begins_at = calloc(histories, sizeof *begins_at);
	ends_at = calloc(histories, sizeof *ends_at);
	furthest = calloc(histories, sizeof *furthest);
	accepted = calloc(histories, 1);
	int all = 0;
	for (int i = 0; i < histories; i++) {
		begins_at[i] = furthest[i] = all;
		all += number(from);
		ends_at[i] = all;
	}
	events = calloc(all, sizeof *events);
	for (int i = 0; i < all; i++) {
		struct event *e = &events[i];
		e->event = number(from);
		e->client = number(from);
		e->attempt = number(from);
		e->kind = number(from);
		e->grant = number(from);
		e->brief = number(from);
		e->entry = number(from);
		e->place = number(from);
		e->version = number(from);
		e->applied = number(from);
		e->ends = number(from);
		for (int n = 0; n < 8; n++)
			e->queue[n] = number(from);
	}
	fclose(from);
	atexit(tell);
}
